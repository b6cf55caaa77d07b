//! Scripted fakes for every port. A dev-dependency only.

pub mod model_server;
