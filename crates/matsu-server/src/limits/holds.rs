//! How long a client on stdio can be held in one call where nothing else was set: by the name it gives itself. A client
//! that gives up twice after the same time is held shorter than that from then on.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use matsu_core::principal::Principal;

/// Limits of tool calls with default settings, less 20 s: Codex 0.166.0 300 s and Gemini CLI 0.61.0 600 s (by source),
/// Claude Code 2.1.325 none while progress reaches it, and 1,800 s without (by source), so what `matsu connect` sets;
/// VS Code 1.140 none found, Cursor 60 s (by reports). Looked up on 2026-11-18. A name is compared by its beginning.
const KNOWN: &[(&str, Duration)] = &[
    ("claude-code", Duration::from_secs(3_580)),
    ("codex", Duration::from_secs(280)),
    ("gemini-cli", Duration::from_secs(580)),
    ("visual studio code", Duration::from_secs(280)),
    ("cursor", Duration::from_secs(40)),
];

/// How long a client of that name can be held; `None`: it is not known.
#[must_use]
pub fn known(client: &str) -> Option<Duration> {
    let client = client.to_lowercase();
    KNOWN.iter().find(|(name, _)| client.starts_with(name)).map(|(_, hold)| *hold)
}

/// A call that was given up earlier says nothing about the client: a short limit is one that a program set for this
/// call, and no known client has a general limit below 60 s.
const CUT_MIN: Duration = Duration::from_secs(10);

/// Two cuts are of one limit if they differ by less than this.
const SAME_WITHIN: Duration = Duration::from_millis(1_500);

const REMEMBERED_MAX: usize = 1_000;

type Key = (Principal, String);

/// Which clients have given up calls, and after how long.
#[derive(Debug, Default)]
pub struct Holds {
    cuts: Mutex<HashMap<Key, Cut>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Cut {
    last: Duration,
    /// What calls are held at most since two cuts were alike.
    bound: Option<Duration>,
}

impl Holds {
    /// How long this client is held at most, after what it has cut.
    #[must_use]
    pub fn bound(&self, owner: &Principal, client: &str) -> Option<Duration> {
        let cuts = self.cuts.lock().unwrap_or_else(PoisonError::into_inner);
        cuts.get(&(owner.clone(), client.to_owned())).and_then(|cut| cut.bound)
    }

    /// The client has given up a call after this time. A person who presses a key does so after any time; a limit
    /// shows itself by the same time twice in a row.
    pub fn cut(&self, owner: &Principal, client: &str, after: Duration) {
        if after < CUT_MIN {
            return;
        }
        let mut cuts = self.cuts.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (owner.clone(), client.to_owned());
        if cuts.len() >= REMEMBERED_MAX && !cuts.contains_key(&key) {
            cuts.clear();
        }
        let cut = cuts.entry(key).or_default();
        if cut.last.abs_diff(after) < SAME_WITHIN {
            let bound = after.mul_f64(0.9).saturating_sub(Duration::from_millis(500));
            cut.bound = Some(cut.bound.map_or(bound, |known| known.min(bound)));
            tracing::info!(
                client,
                seconds = bound.as_secs_f64(),
                "a client ended two calls early; its later calls are held for a shorter time"
            );
        }
        cut.last = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_known_by_the_names_they_send() {
        for (name, seconds) in [
            ("claude-code", Some(3_580)),
            ("codex-mcp-client", Some(280)),
            ("gemini-cli-mcp-client-matsu", Some(580)),
            ("Visual Studio Code", Some(280)),
            ("Visual Studio Code - Insiders", Some(280)),
            ("cursor-vscode", Some(40)),
            ("Cursor", Some(40)),
            ("opencode", None),
            ("", None),
        ] {
            assert_eq!(known(name).map(|hold| hold.as_secs()), seconds, "{name}");
        }
    }

    #[test]
    fn the_same_cut_twice_is_a_limit_and_different_ones_are_a_person() {
        let (holds, me) = (Holds::default(), Principal::local_user());
        for seconds in [60, 17, 33, 12] {
            holds.cut(&me, "x", Duration::from_secs(seconds));
            assert_eq!(holds.bound(&me, "x"), None, "{seconds}");
        }
        holds.cut(&me, "x", Duration::from_secs(13));
        assert_eq!(holds.bound(&me, "x"), Some(Duration::from_millis(11_200)));
        assert_eq!(holds.bound(&me, "y"), None);
        assert_eq!(holds.bound(&Principal::user("other"), "x"), None);
        for seconds in [1, 1, 9, 9] {
            holds.cut(&me, "y", Duration::from_secs(seconds));
            assert_eq!(holds.bound(&me, "y"), None, "a limit of {seconds} s was set for one call");
        }
    }
}
