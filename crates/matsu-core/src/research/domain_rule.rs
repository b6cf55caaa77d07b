//! A person's word about a domain. The newest active rule that matches a host decides; without one nothing is blocked.

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::id::RuleId;
use crate::principal::Principal;
use crate::words::words;

use super::address::is_public_suffix;

words! {
    /// What a rule says.
    pub enum RuleDecision {
        Block = "block",
        Unblock = "unblock",
    }
}

/// A rule as stored. Of an owner, for the owner's searches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DomainRule {
    pub id: RuleId,
    pub owner: Principal,
    pub pattern: DomainPattern,
    pub decision: RuleDecision,
    pub reason: String,
    pub created_at: Timestamp,
    /// Order of making; the newest wins.
    pub seq: i64,
}

/// `example.com` (that very host and its `www.`) or `*.example.com` (the domain and everything below it).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DomainPattern(String);

/// Why a text is no pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    #[error("a host name such as example.com or a pattern such as *.example.com")]
    Malformed,
    #[error("a domain below the public suffix {0}, which unrelated sites share")]
    PublicSuffix(String),
}

impl DomainPattern {
    /// # Errors
    /// When it is no host name, or names a public suffix, under which any person can register a name.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let text = text.trim().trim_end_matches('.').to_lowercase();
        let name = text.strip_prefix("*.").unwrap_or(&text);
        let is_local = name.strip_prefix("local:").is_some_and(|folder| !folder.is_empty());
        if !is_local {
            // Names in other scripts are compared in their ASCII form, as addresses carry them.
            let ascii = url::Host::parse(name).map_err(|_| PatternError::Malformed)?.to_string();
            let labels_ok = ascii.split('.').all(|label| !label.is_empty() && !label.contains('*'));
            if name.is_empty() || !labels_ok {
                return Err(PatternError::Malformed);
            }
            if is_public_suffix(&ascii) && ascii != "localhost" {
                return Err(PatternError::PublicSuffix(ascii));
            }
            let wild = if text.starts_with("*.") { "*." } else { "" };
            return Ok(Self(format!("{wild}{ascii}")));
        }
        Ok(Self(text))
    }

    /// What a store wrote down.
    #[must_use]
    pub fn from_text(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    #[must_use]
    pub fn matches(&self, host: &str) -> bool {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        match self.0.strip_prefix("*.") {
            Some(domain) => host == domain || host.strip_suffix(domain).is_some_and(|before| before.ends_with('.')),
            None => host == self.0 || host.strip_prefix("www.").is_some_and(|bare| bare == self.0),
        }
    }
}

/// The rule that decides about a host: the newest that matches.
#[must_use]
pub fn deciding<'a>(rules: &'a [DomainRule], host: &str) -> Option<&'a DomainRule> {
    rules.iter().filter(|rule| rule.pattern.matches(host)).max_by_key(|rule| rule.seq)
}

/// Whether the rules keep a host out.
#[must_use]
pub fn is_blocked(rules: &[DomainRule], host: &str) -> bool {
    deciding(rules, host).is_some_and(|rule| rule.decision == RuleDecision::Block)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(seq: i64, pattern: &str, decision: RuleDecision) -> DomainRule {
        DomainRule {
            id: RuleId::mint(Timestamp::from_millis(0)),
            owner: Principal::local_user(),
            pattern: DomainPattern::parse(pattern).unwrap(),
            decision,
            reason: String::new(),
            created_at: Timestamp::from_millis(0),
            seq,
        }
    }

    #[test]
    fn the_newest_matching_rule_wins() {
        let mut rules = vec![rule(1, "*.example.com", RuleDecision::Block)];
        assert!(is_blocked(&rules, "a.example.com"));
        assert!(is_blocked(&rules, "example.com"));
        assert!(!is_blocked(&rules, "badexample.com"));
        rules.insert(0, rule(2, "a.example.com", RuleDecision::Unblock));
        assert!(!is_blocked(&rules, "a.example.com"));
        assert!(!is_blocked(&rules, "www.a.example.com"));
        assert!(is_blocked(&rules, "b.example.com"));
        rules.push(rule(3, "*.example.com", RuleDecision::Block));
        assert!(is_blocked(&rules, "a.example.com"));
        assert!(!is_blocked(&rules, "example.org"));
    }

    #[test]
    fn public_suffixes_and_nonsense_are_refused() {
        for pattern in ["*", "**", "*.com", "com", "*.co.jp", "*.jp", "*.io", "co.uk", "*.github.io"] {
            assert!(DomainPattern::parse(pattern).is_err(), "{pattern}");
        }
        for pattern in ["", "*.", "a..b.com", "http://example.com", "exa mple.com", "*.*.com", "a*.example.com"] {
            assert_eq!(DomainPattern::parse(pattern), Err(PatternError::Malformed), "{pattern}");
        }
        for (pattern, kept) in [
            ("*.Example.COM", "*.example.com"),
            ("例え.jp", "xn--r8jz45g.jp"),
            ("127.0.0.1", "127.0.0.1"),
            ("local:notes", "local:notes"),
        ] {
            assert_eq!(DomainPattern::parse(pattern).unwrap().as_str(), kept, "{pattern}");
        }
    }
}
