//! Which results are read, and in what order: what rules forbid left out, priority domains first, then one page of
//! each domain in turn, so that independent sources come early.

use std::collections::HashMap;

use matsu_core::limits::CANDIDATES_MAX;
use matsu_core::research::address;
use matsu_core::research::domain_rule::{DomainPattern, DomainRule, RuleDecision, deciding};
use matsu_core::research::merge::{Hit, Merged};

use super::state::Candidate;

/// The domain a result counts for, if it has one.
pub fn domain_of(hit: &Hit) -> String {
    hit.domain.clone().or_else(|| address::domain_of(&hit.url)).unwrap_or_default()
}

/// Whether a person's rules keep this address out: the newest rule that matches its host, or the domain that a document
/// on this machine counts for.
pub fn is_ruled_out(rules: &[DomainRule], hit: &Hit) -> bool {
    blocking(rules, hit).is_some()
}

/// The rule that keeps an address out.
fn blocking<'a>(rules: &'a [DomainRule], hit: &Hit) -> Option<&'a DomainRule> {
    let host = address::host(&hit.url);
    let names = host.iter().chain(hit.domain.as_ref());
    let newest = names.filter_map(|name| deciding(rules, name)).max_by_key(|rule| rule.seq);
    newest.filter(|rule| rule.decision == RuleDecision::Block)
}

/// What is read, and a note about what is not.
pub struct Selected {
    pub candidates: Vec<Candidate>,
    /// One note for each rule that kept results out.
    pub left_out: Vec<String>,
}

/// Best first within each round.
pub fn select(merged: Vec<Merged>, rules: &[DomainRule], priority_domains: &[String]) -> Selected {
    let patterns: Vec<DomainPattern> = priority_domains
        .iter()
        .filter_map(|domain| DomainPattern::parse(&format!("*.{}", domain.trim_start_matches("*."))).ok())
        .collect();
    let is_priority = |hit: &Hit| {
        let host = address::host(&hit.url).unwrap_or_default();
        patterns.iter().any(|pattern| pattern.matches(&host) || pattern.matches(&domain_of(hit)))
    };
    let mut rounds: HashMap<String, usize> = HashMap::new();
    let mut ranked: Vec<(bool, usize, usize, Candidate)> = Vec::new();
    let mut ruled_out: Vec<(&DomainRule, Vec<String>)> = Vec::new();
    for (place, merged) in merged.into_iter().enumerate() {
        if let Some(rule) = blocking(rules, &merged.hit) {
            match ruled_out.iter_mut().find(|(known, _)| known.id == rule.id) {
                Some((_, urls)) => urls.push(merged.hit.url),
                None => ruled_out.push((rule, vec![merged.hit.url])),
            }
            continue;
        }
        let round = rounds.entry(domain_of(&merged.hit)).or_default();
        let candidate = Candidate { hit: merged.hit, engines: merged.engines, ..Candidate::default() };
        ranked.push((!is_priority(&candidate.hit), *round, place, candidate));
        *round += 1;
    }
    ranked.sort_by_key(|(is_usual, round, place, _)| (*is_usual, *round, *place));
    let candidates = ranked.into_iter().map(|(_, _, _, candidate)| candidate).take(CANDIDATES_MAX).collect();
    Selected { candidates, left_out: ruled_out.iter().map(|(rule, urls)| left_out(rule, urls)).collect() }
}

/// The first address by name: a note about a page begins with its address.
fn left_out(rule: &DomainRule, urls: &[String]) -> String {
    let mut note = format!("{}: left out by the rule for {}", urls[0], rule.pattern.as_str());
    if !rule.reason.is_empty() {
        note.push_str(&format!(" ({})", rule.reason));
    }
    match urls.len() - 1 {
        0 => {}
        1 => note.push_str("; so is 1 other result"),
        more => note.push_str(&format!("; so are {more} other results")),
    }
    note
}

#[cfg(test)]
mod tests {
    use super::*;
    use matsu_core::clock::Timestamp;
    use matsu_core::id::RuleId;
    use matsu_core::principal::Principal;

    fn merged(urls: &[&str]) -> Vec<Merged> {
        let hit = |url: &&str| Hit { url: (*url).to_owned(), ..Hit::default() };
        urls.iter().map(|url| Merged { hit: hit(url), engines: vec![], score: 0.0 }).collect()
    }

    fn urls(selected: &Selected) -> Vec<&str> {
        selected.candidates.iter().map(|candidate| candidate.hit.url.as_str()).collect()
    }

    #[test]
    fn domains_take_turns_and_priority_goes_first() {
        let found = merged(&["https://a.org/1", "https://a.org/2", "https://b.org/1", "https://x.c.org/1"]);
        assert_eq!(
            urls(&select(found.clone(), &[], &[])),
            ["https://a.org/1", "https://b.org/1", "https://x.c.org/1", "https://a.org/2"]
        );
        assert_eq!(urls(&select(found, &[], &["c.org".to_owned()]))[0], "https://x.c.org/1");
    }

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
    fn blocked_domains_are_left_out_and_the_newest_rule_wins() {
        let found = || merged(&["https://www.a.org/1", "https://x.a.org/1", "https://b.org/1"]);
        let all = rule(1, "*.a.org", RuleDecision::Block);
        assert_eq!(urls(&select(found(), std::slice::from_ref(&all), &[])), ["https://b.org/1"]);
        let one = rule(2, "x.a.org", RuleDecision::Unblock);
        assert_eq!(urls(&select(found(), &[all, one], &[])), ["https://x.a.org/1", "https://b.org/1"]);
        let host = rule(1, "a.org", RuleDecision::Block);
        assert_eq!(urls(&select(found(), &[host], &[])), ["https://x.a.org/1", "https://b.org/1"]);
    }

    #[test]
    fn what_a_rule_keeps_out_is_said_once_for_each_rule() {
        let found = merged(&["https://www.a.org/1", "https://x.a.org/2", "https://b.org/1"]);
        let all = DomainRule { reason: "copies".to_owned(), ..rule(1, "*.a.org", RuleDecision::Block) };
        let selected = select(found, &[all], &[]);
        assert_eq!(
            selected.left_out,
            ["https://www.a.org/1: left out by the rule for *.a.org (copies); so is 1 other result"]
        );
        assert!(super::super::state::is_about_page(&selected.left_out[0]), "it is shown among what was skipped");
    }
}
