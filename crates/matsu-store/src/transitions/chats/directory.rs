//! Projects and agents.

use matsu_core::agent::Agent;
use matsu_core::error_code::ErrorCode;
use matsu_core::id::{AgentId, ProjectId};
use matsu_core::page::Page;
use matsu_core::ports::store::{
    InsertAgent, InsertProject, ListAgents, ListProjects, ReadAgent, ReadProject, StoreError,
};
use matsu_core::project::{Project, ProjectStatus};

use crate::sql::{Row, Sql, Transition, Tx, params};
use crate::transitions::paging::page;

const INSERT_PROJECT: Sql = Sql::both(
    "INSERT INTO projects (id, name, working_directory, status, created_at) VALUES ($1, $2, $3, 'active', $4) \
     ON CONFLICT (id) DO NOTHING",
);
macro_rules! project_columns {
    () => {
        "seq, id, name, working_directory, status, created_at"
    };
}
const PROJECT: Sql = Sql::both(concat!("SELECT ", project_columns!(), " FROM projects WHERE id = $1"));
const PROJECTS: Sql = Sql::both(concat!(
    "SELECT ",
    project_columns!(),
    " FROM projects WHERE seq > coalesce(CAST($1 AS BIGINT), -1) ORDER BY seq LIMIT $2"
));
const INSERT_AGENT: Sql = Sql::both(
    "INSERT INTO agents (id, name, definition, system_prompt, passkey_hash, created_at) \
     VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (id) DO NOTHING",
);
macro_rules! agent_columns {
    () => {
        "seq, id, name, definition, system_prompt, passkey_hash, created_at"
    };
}
const AGENT: Sql = Sql::both(concat!("SELECT ", agent_columns!(), " FROM agents WHERE id = $1"));
const AGENTS: Sql = Sql::both(concat!(
    "SELECT ",
    agent_columns!(),
    " FROM agents WHERE seq > coalesce(CAST($1 AS BIGINT), -1) ORDER BY seq LIMIT $2"
));

fn project(row: &Row) -> Result<Project, StoreError> {
    let mut c = row.columns();
    Ok(Project {
        seq: c.int()?,
        id: ProjectId::from_text(c.text()?),
        name: c.text()?,
        working_directory: c.opt_text()?,
        status: c.word(ProjectStatus::parse)?,
        created_at: c.time()?,
    })
}

fn agent(row: &Row) -> Result<Agent, StoreError> {
    let mut c = row.columns();
    Ok(Agent {
        seq: c.int()?,
        id: AgentId::from_text(c.text()?),
        name: c.text()?,
        definition: c.opt_text()?,
        system_prompt: c.opt_text()?,
        passkey_hash: c.text()?,
        created_at: c.time()?,
    })
}

fn taken(what: &str, id: &str) -> StoreError {
    StoreError::Refused { code: ErrorCode::InvalidParams, message: format!("there is {what} {id} already") }
}

pub async fn read_project(tx: &mut Tx<'_>, id: &ProjectId) -> Result<Project, StoreError> {
    let row = tx.row(&PROJECT, params![id]).await?;
    project(&row.ok_or_else(|| StoreError::NotFound { what: "project", id: id.to_string() })?)
}

pub async fn read_agent(tx: &mut Tx<'_>, id: &AgentId) -> Result<Agent, StoreError> {
    let row = tx.row(&AGENT, params![id]).await?;
    agent(&row.ok_or_else(|| StoreError::NotFound { what: "agent", id: id.to_string() })?)
}

impl Transition for InsertProject {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<Project, StoreError> {
        let new = &self.0;
        let values = params![&new.id, &new.name, new.working_directory.as_ref(), new.created_at];
        if tx.run(&INSERT_PROJECT, values).await? == 0 {
            return Err(taken("a project", new.id.as_str()));
        }
        read_project(tx, &new.id).await
    }
}

impl Transition for ReadProject {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Project, StoreError> {
        read_project(tx, &self.0).await
    }
}

impl Transition for ListProjects {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Page<Project>, StoreError> {
        let rows = tx.rows(&PROJECTS, params![self.0.after, self.0.limit() + 1]).await?;
        let projects = rows.iter().map(project).collect::<Result<Vec<_>, _>>()?;
        Ok(page(projects, &self.0, |project| project.seq))
    }
}

impl Transition for InsertAgent {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<Agent, StoreError> {
        let new = &self.0;
        let values = params![
            &new.id,
            &new.name,
            new.definition.as_ref(),
            new.system_prompt.as_ref(),
            &new.passkey_hash,
            new.created_at
        ];
        if tx.run(&INSERT_AGENT, values).await? == 0 {
            return Err(taken("an agent", new.id.as_str()));
        }
        read_agent(tx, &new.id).await
    }
}

impl Transition for ReadAgent {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Agent, StoreError> {
        read_agent(tx, &self.0).await
    }
}

impl Transition for ListAgents {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Page<Agent>, StoreError> {
        let rows = tx.rows(&AGENTS, params![self.0.after, self.0.limit() + 1]).await?;
        let agents = rows.iter().map(agent).collect::<Result<Vec<_>, _>>()?;
        Ok(page(agents, &self.0, |agent| agent.seq))
    }
}
