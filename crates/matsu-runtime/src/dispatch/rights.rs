//! What a session may call. It works for a principal, and has fewer rights than that principal.

use serde_json::json;

use matsu_core::access::Rights;
use matsu_core::error_code::ErrorCode;
use matsu_core::session::Session;

use super::presets::Offer;
use crate::tool::{ToolEntry, ToolError, Toolset};

/// Whether the session may call the tool.
///
/// # Errors
/// `FORBIDDEN` for what it was not granted, `WRONG_PURPOSE` for a tool of the other purpose.
pub fn check(entry: &ToolEntry, session: &Session) -> Result<(), ToolError> {
    if let Some(purpose) = entry.rules.purpose
        && session.purpose != purpose
    {
        let message = format!(
            "{} is for sessions with the purpose {purpose}; this session has the purpose {}",
            entry.name, session.purpose
        );
        let details = json!({ "needed_purpose": purpose.as_str(), "purpose": session.purpose.as_str() });
        return Err(ToolError { details, ..ToolError::new(ErrorCode::WrongPurpose, message) });
    }
    if !allows(session.grants.as_deref(), entry) {
        let message = format!(
            "this session was not granted {}; only a person, or a session that was granted it, may call it",
            entry.name
        );
        return Err(ToolError::new(ErrorCode::Forbidden, message));
    }
    Ok(())
}

/// Whether a caller in this role may call the tool.
///
/// # Errors
/// `FORBIDDEN`, with the roles that may.
pub fn check_role(entry: &ToolEntry, rights: &Rights) -> Result<(), ToolError> {
    let forbidden = |message: String| Err(ToolError::new(ErrorCode::Forbidden, message));
    if let Some(tools) = &rights.tools
        && Offer::parse(tools).is_ok_and(|offer| offer.find(entry.name).is_none())
    {
        return forbidden(format!("this token is limited to the tools {tools}; {} is not among them", entry.name));
    }
    if entry.rules.admin_only && !rights.is_admin() {
        return forbidden(format!("{} is for admins: its changes apply to every user", entry.name));
    }
    if !rights.may_write() && !entry.is_for_viewers() {
        let message = format!(
            "this token has the role viewer, which may only read; {} needs a token with the role member or admin",
            entry.name
        );
        return forbidden(message);
    }
    Ok(())
}

/// Whether a session with these grants may call the tool. One that came by itself has none, and sees what its
/// connection offers.
#[must_use]
pub fn allows(grants: Option<&str>, entry: &ToolEntry) -> bool {
    let granted = |word: &str| grants.unwrap_or_default().split(',').map(str::trim).any(|grant| grant == word);
    if entry.toolset == Toolset::Sessions || granted(entry.name) {
        return true;
    }
    let of_core = granted("core") && entry.core;
    !entry.rules.person_only && (grants.is_none() || granted(entry.toolset.as_str()) || granted("all") || of_core)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::TOOLS;
    use matsu_core::access::Role;
    use matsu_core::clock::Timestamp;
    use matsu_core::id::{AgentId, ProjectId, SessionId};
    use matsu_core::principal::Principal;
    use matsu_core::session::{Purpose, SessionState};

    fn session(purpose: Purpose, grants: Option<&str>) -> Session {
        let now = Timestamp::from_millis(0);
        Session {
            id: SessionId::from_text("sess_1"),
            owner: Principal::local_user(),
            agent_id: AgentId::from_text("worker"),
            project_id: ProjectId::from_text("default"),
            purpose,
            task_id: None,
            chat_id: None,
            job_id: None,
            run_id: None,
            mode: None,
            grants: grants.map(str::to_owned),
            state: SessionState::Active,
            end_reason: None,
            created_at: now,
            last_seen_at: now,
            expires_at: now,
            ended_at: None,
            seq: 1,
        }
    }

    #[test]
    fn a_session_calls_what_it_was_granted() {
        for tool in TOOLS.iter() {
            let may = |grants| allows(grants, tool);
            assert!(may(Some("all")) || tool.rules.person_only, "{}", tool.name);
            assert_eq!(may(None), !tool.rules.person_only, "{}", tool.name);
            assert_eq!(may(Some("")), tool.toolset == Toolset::Sessions, "{}", tool.name);
            assert!(may(Some(tool.name)), "{}", tool.name);
        }
    }

    #[test]
    fn a_role_and_a_set_of_tools_bound_what_is_called() {
        let find = |name: &str| TOOLS.iter().find(|tool| tool.name == name).unwrap();
        let rights = |role, tools: Option<&str>| Rights::new(role, Vec::new(), tools.map(Into::into));
        let may = |rights: &Rights, name: &str| check_role(find(name), rights).is_ok();
        let (viewer, member) = (rights(Role::Viewer, None), rights(Role::Member, None));
        assert!(may(&viewer, "get_status") && !may(&viewer, "create_task") && !may(&viewer, "cancel_task"));
        assert!(may(&viewer, "get_task_status") && !may(&viewer, "answer_question"), "an answer is no look");
        assert!(may(&member, "create_task") && !may(&member, "calibration_rollback"));
        assert!(may(&rights(Role::Admin, None), "calibration_rollback"));
        let limited = rights(Role::Admin, Some("core"));
        assert!(may(&limited, "use_agent") && !may(&limited, "feedback"));
    }

    #[test]
    fn a_tool_of_the_other_purpose_names_the_right_one() {
        let tool = TOOLS.iter().find(|tool| tool.name == "report_completed").unwrap();
        check(tool, &session(Purpose::Task, None)).unwrap();
        let refused = check(tool, &session(Purpose::Chat, None)).unwrap_err();
        assert_eq!(refused.code, ErrorCode::WrongPurpose);
        assert_eq!(refused.details["needed_purpose"], "task");
    }
}
