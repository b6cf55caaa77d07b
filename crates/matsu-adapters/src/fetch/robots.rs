//! robots.txt: what a site asks of visitors like us. Asked for once a day and site, and obeyed.
//!
//! A site without the file has no rules (4xx). A site whose file cannot be read (5xx, no answer, a login page) is left
//! alone until it can, as RFC 9309 asks.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use matsu_core::clock::Timestamp;
use texting_robots::Robot;

/// Longest pause that a site's `Crawl-delay` can ask for; more would be a refusal, which has a word of its own.
const DELAY_MAX: Duration = Duration::from_secs(30);

/// The rules of one site.
#[derive(Clone)]
pub enum Wishes {
    None,
    Keep(Arc<Robot>),
    /// It could not be read, so nothing is fetched.
    Unknown,
}

impl Wishes {
    /// What an answer to `/robots.txt` amounts to; `None` stands for no answer at all.
    #[must_use]
    pub fn of_answer(agent: &str, answer: Option<(u16, &[u8])>) -> Self {
        match answer {
            Some((200..=299, body)) => Self::parse(agent, body),
            Some((400..=499, _)) => Self::None,
            Some(_) | None => Self::Unknown,
        }
    }

    /// A file that cannot be parsed has no rules.
    #[must_use]
    pub fn parse(agent: &str, body: &[u8]) -> Self {
        let parsed = std::panic::catch_unwind(|| Robot::new(agent, body));
        match parsed {
            Ok(Ok(robot)) => Self::Keep(Arc::new(robot)),
            Ok(Err(_)) | Err(_) => Self::None,
        }
    }

    #[must_use]
    pub fn allow(&self, url: &str) -> bool {
        match self {
            Self::None => true,
            Self::Keep(robot) => robot.allowed(url),
            Self::Unknown => false,
        }
    }

    /// The pause between two requests that the site asks for.
    #[must_use]
    pub fn delay(&self) -> Option<Duration> {
        let Self::Keep(robot) = self else { return None };
        let seconds = robot.delay.filter(|s| s.is_finite() && *s > 0.0)?;
        Some(Duration::from_secs_f32(seconds.min(DELAY_MAX.as_secs_f32())))
    }
}

/// The rules of the sites visited lately, by origin.
#[derive(Default)]
pub struct RobotsCache {
    sites: Mutex<HashMap<String, (Timestamp, Wishes)>>,
}

/// A site's rules are asked for again after this long; sooner if they could not be read.
const KEPT: Duration = Duration::from_secs(24 * 3600);
const UNKNOWN_KEPT: Duration = Duration::from_secs(5 * 60);
const SITES_MAX: usize = 2_000;

impl RobotsCache {
    #[must_use]
    pub fn get(&self, origin: &str, now: Timestamp) -> Option<Wishes> {
        let sites = self.sites.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, wishes) = sites.get(origin)?;
        let kept = if matches!(wishes, Wishes::Unknown) { UNKNOWN_KEPT } else { KEPT };
        (now.since(*at) < kept).then(|| wishes.clone())
    }

    pub fn put(&self, origin: &str, now: Timestamp, wishes: Wishes) {
        let mut sites = self.sites.lock().unwrap_or_else(PoisonError::into_inner);
        if sites.len() >= SITES_MAX {
            let oldest = sites.iter().min_by_key(|(_, (at, _))| *at).map(|(origin, _)| origin.clone());
            if let Some(oldest) = oldest {
                sites.remove(&oldest);
            }
        }
        sites.insert(origin.to_owned(), (now, wishes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &[u8] = b"User-agent: *\nDisallow: /private/\nAllow: /private/open\nCrawl-delay: 90\n\nUser-agent: otherbot\nDisallow: /\n";

    #[test]
    fn wishes_follow_the_answer() {
        let at = |answer| Wishes::of_answer("matsu", answer).allow("https://example.org/private/x");
        assert!(!at(Some((200, FILE))));
        assert!(at(Some((404, FILE))));
        assert!(!at(Some((503, b"".as_slice()))));
        assert!(!at(None));
    }

    #[test]
    fn rules_are_read_and_a_delay_is_bounded() {
        let wishes = Wishes::parse("matsu", FILE);
        assert!(wishes.allow("https://example.org/a"));
        assert!(wishes.allow("https://example.org/private/open"));
        assert_eq!(wishes.delay(), Some(DELAY_MAX));
    }

    #[test]
    fn the_cache_forgets_in_time() {
        let cache = RobotsCache::default();
        let start = Timestamp::from_millis(0);
        cache.put("https://a", start, Wishes::None);
        cache.put("https://b", start, Wishes::Unknown);
        let later = start.plus(Duration::from_secs(3600));
        assert!(cache.get("https://a", later).is_some());
        assert!(cache.get("https://b", later).is_none());
        assert!(cache.get("https://a", start.plus(KEPT)).is_none());
    }

    proptest::proptest! {
        #[test]
        fn no_file_breaks_the_parser(body in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..400), path in "\\PC{0,40}") {
            let _ = Wishes::parse("matsu", &body).allow(&format!("https://example.org/{path}"));
        }

        #[test]
        fn no_rule_breaks_the_parser(rules in "(User-agent: \\*\n)?((Dis)?[Aa]llow: [/*$%a-z\\PC]{0,30}\n|Crawl-delay: [0-9.e-]{0,8}\n|#\\PC{0,10}\n){0,12}") {
            let wishes = Wishes::parse("matsu", rules.as_bytes());
            let _ = (wishes.allow("https://example.org/a/b?c=d"), wishes.delay());
        }
    }
}
