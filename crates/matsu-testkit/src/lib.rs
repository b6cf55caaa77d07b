//! Scripted fakes for every port. A dev-dependency only.

pub mod dice;
pub mod fake_agents;
pub mod fake_model;
pub mod fake_tools;
pub mod hostile;
pub mod model_server;
pub mod skipped;
pub mod test_site;
pub mod until;
pub mod web;
