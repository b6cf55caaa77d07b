//! Scripted fakes for every port. A dev-dependency only.

pub mod fake_agents;
pub mod model_server;
