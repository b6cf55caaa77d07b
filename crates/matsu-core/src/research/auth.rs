//! The auth queue: pages that need a login by a person. One item per owner and address.

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::id::{AuthItemId, JobId, TaskId};
use crate::job::Priority;
use crate::principal::Principal;
use crate::words::words;

words! {
    /// What stands in the way.
    pub enum AuthType {
        Login = "login",
        Captcha = "captcha",
        Cloudflare = "cloudflare",
        JsChallenge = "js_challenge",
        /// 401 or 403 without more.
        Forbidden = "forbidden",
    }
}

words! {
    /// Where an item stands.
    pub enum AuthStatus {
        Pending = "pending",
        Completed = "completed",
        Skipped = "skipped",
        Expired = "expired",
    }
}

/// A search that waits for a login.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocked {
    pub task_id: TaskId,
    pub search_id: JobId,
}

/// A page that needs a login by a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AuthItem {
    pub id: AuthItemId,
    pub owner: Principal,
    pub url: String,
    pub domain: String,
    pub auth_type: AuthType,
    pub priority: Priority,
    pub status: AuthStatus,
    pub blocked: Vec<Blocked>,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
}

/// How many pending items a principal has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuthPressure {
    pub pending: usize,
    pub high: usize,
}

impl AuthPressure {
    /// The line for `warnings`, from three pending items on.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        let level = match (self.pending, self.high) {
            (pending, high) if pending >= 5 || high >= 2 => "critical",
            (pending, _) if pending >= 3 => "warning",
            _ => return None,
        };
        Some(format!(
            "[{level}] {} pages wait for a person ({} of high priority); see get_auth_queue",
            self.pending, self.high
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pressure_warns_at_its_thresholds() {
        for (pending, high, level) in [
            (0, 0, None),
            (2, 1, None),
            (3, 0, Some("[warning]")),
            (4, 1, Some("[warning]")),
            (5, 0, Some("[critical]")),
            (2, 2, Some("[critical]")),
        ] {
            let warning = AuthPressure { pending, high }.warning();
            assert_eq!(warning.as_deref().and_then(|text| text.split(' ').next()), level, "{pending}, {high}");
        }
    }
}
