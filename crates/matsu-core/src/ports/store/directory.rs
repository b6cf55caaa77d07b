//! The directory: projects and agents.

use crate::agent::{Agent, NewAgent};
use crate::id::{AgentId, ProjectId};
use crate::page::{Page, PageRequest};
use crate::project::{NewProject, Project};

use super::request;

/// An id that is in use is `Refused`.
#[derive(Clone, Debug)]
pub struct InsertProject(pub NewProject);
request!(InsertProject => Project);

#[derive(Clone, Debug)]
pub struct ReadProject(pub ProjectId);
request!(ReadProject => Project);

/// Oldest first.
#[derive(Clone, Debug)]
pub struct ListProjects(pub PageRequest);
request!(ListProjects => Page<Project>);

/// An id that is in use is `Refused`.
#[derive(Clone)]
pub struct InsertAgent(pub NewAgent);
request!(InsertAgent => Agent);

#[derive(Clone, Debug)]
pub struct ReadAgent(pub AgentId);
request!(ReadAgent => Agent);

/// Oldest first.
#[derive(Clone, Debug)]
pub struct ListAgents(pub PageRequest);
request!(ListAgents => Page<Agent>);
