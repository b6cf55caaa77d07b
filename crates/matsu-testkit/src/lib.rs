//! Scripted fakes for every port. A dev-dependency only.

pub mod model_server;
pub mod test_site;
pub mod web;
