//! Sessions: begin, look, report, end.

use crate::clock::Timestamp;
use crate::id::{AgentId, ChatId, JobId, ProjectId, RunId, SessionId, TaskId};
use crate::page::{Page, PageRequest};
use crate::principal::Principal;
use crate::session::{AgentReport, EndReason, Outcome, Session, SessionState, SessionView, Unread};
use crate::task::TaskStatus;

use super::request;

request! {
    /// Begins a session for what is open, by the core's rule; the session it takes over ends. Nothing open is
    /// `Refused` with `NOTHING_TO_DO`. A task that only waited for an agent runs from here on.
    NewSession => Session
}

#[derive(Clone, Debug)]
pub struct ReadSession(pub SessionId);
request!(ReadSession => Session);

/// The session and what it has not acknowledged; ended ones too. Unknown: `None`.
#[derive(Clone, Debug)]
pub struct ReadStanding {
    pub key: SessionKey,
    pub now: Timestamp,
}
request!(ReadStanding => Option<Standing>);

/// A call came: the session lives longer. Never shortens, never revives.
#[derive(Clone, Debug)]
pub struct TouchSession {
    pub id: SessionId,
    pub now: Timestamp,
    pub expires_at: Timestamp,
}
request!(TouchSession => ());

/// Everything that decides the session's next action, in one read.
#[derive(Clone, Debug)]
pub struct ReadSessionView {
    pub id: SessionId,
    pub after_seq: Option<i64>,
    pub now: Timestamp,
}
request!(ReadSessionView => SessionView);

request! {
    /// Ends a session, or marks it as ending, which its agent then reads. Only ever goes forward; the first reason
    /// stands.
    EndSession => Session
}

request! {
    /// The agent reports how its task went; the session ends. A task that has ended, is held back or was given to
    /// another agent meanwhile keeps its status. Repeating it changes nothing.
    Report => Reported
}

/// What the session's agent has reported, if it has.
#[derive(Clone, Debug)]
pub struct ReadReport(pub SessionId);
request!(ReadReport => Option<AgentReport>);

/// The session of this run, if this store has had one. Ended ones too, until they are forgotten.
#[derive(Clone, Debug)]
pub struct SessionOfRun(pub RunId);
request!(SessionOfRun => Option<Session>);

/// Newest first.
#[derive(Clone, Debug)]
pub struct ListSessions {
    pub filter: SessionFilter,
    pub page: PageRequest,
}
request!(ListSessions => Page<Session>);

/// Ends sessions that have expired or whose run is gone, and forgets those that ended before `ended_before`. Returns the ended ones.
#[derive(Clone, Debug)]
pub struct SweepSessions {
    pub now: Timestamp,
    pub ended_before: Timestamp,
    pub rows_max: u32,
}
request!(SweepSessions => Vec<SessionId>);

#[derive(Clone, Debug)]
pub enum SessionKey {
    /// SHA-256 of the token, in hex.
    TokenHash(String),
    Id(SessionId),
}

#[derive(Clone, Debug)]
pub struct Standing {
    pub session: Session,
    pub unread: Unread,
}

#[derive(Clone, Debug)]
pub struct NewSession {
    pub id: SessionId,
    pub token_hash: String,
    pub owner: Principal,
    pub agent_id: AgentId,
    pub project_id: ProjectId,
    pub wanted: WantedFor,
    /// Sessions of the agent that wait in a call at this moment.
    pub listening: Vec<SessionId>,
    pub job_id: Option<JobId>,
    pub run_id: Option<RunId>,
    pub mode: Option<String>,
    pub grants: Option<String>,
    pub now: Timestamp,
    pub expires_at: Timestamp,
}

/// What a session is begun for.
#[derive(Clone, Debug)]
pub enum WantedFor {
    /// Whatever is open, by the core's rule.
    WhateverIsOpen,
    /// This task, of a run that Matsu starts.
    Task(TaskId),
    /// This chat, of a run that Matsu starts.
    Chat(ChatId),
}

#[derive(Clone, Debug)]
pub struct EndSession {
    pub id: SessionId,
    /// `Ending`: the agent gets it at its next look. `Ended`: it knows, or never will.
    pub to: SessionState,
    pub reason: EndReason,
    pub now: Timestamp,
}

#[derive(Clone, Debug)]
pub struct Report {
    pub session_id: SessionId,
    pub outcome: Outcome,
    pub summary: Option<String>,
    pub next_steps: Option<String>,
    pub job_id: JobId,
    pub now: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reported {
    pub task_id: TaskId,
    pub status: TaskStatus,
}

#[derive(Clone, Debug, Default)]
pub struct SessionFilter {
    pub owner: Option<Principal>,
    pub agent_id: Option<AgentId>,
    pub project_id: Option<ProjectId>,
    pub state: Option<SessionState>,
}
