//! The directory: projects and agents.

use async_trait::async_trait;

use crate::agent::{Agent, NewAgent};
use crate::id::{AgentId, ProjectId};
use crate::page::{Page, PageRequest};
use crate::project::{NewProject, Project};

use super::StoreError;

#[async_trait]
pub trait DirectoryStore {
    /// An id that is in use is `Refused`.
    async fn insert_project(&self, project: NewProject) -> Result<Project, StoreError>;

    async fn project(&self, id: &ProjectId) -> Result<Project, StoreError>;

    /// Oldest first.
    async fn list_projects(&self, page: &PageRequest) -> Result<Page<Project>, StoreError>;

    /// An id that is in use is `Refused`.
    async fn insert_agent(&self, agent: NewAgent) -> Result<Agent, StoreError>;

    async fn agent(&self, id: &AgentId) -> Result<Agent, StoreError>;

    /// Oldest first.
    async fn list_agents(&self, page: &PageRequest) -> Result<Page<Agent>, StoreError>;
}
