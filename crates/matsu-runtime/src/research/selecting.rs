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
    let host = address::host(&hit.url);
    let names = host.iter().chain(hit.domain.as_ref());
    let newest = names.filter_map(|name| deciding(rules, name)).max_by_key(|rule| rule.seq);
    newest.is_some_and(|rule| rule.decision == RuleDecision::Block)
}

/// Best first within each round.
pub fn select(merged: Vec<Merged>, rules: &[DomainRule], priority_domains: &[String]) -> Vec<Candidate> {
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
    for (place, merged) in merged.into_iter().enumerate() {
        if is_ruled_out(rules, &merged.hit) {
            continue;
        }
        let round = rounds.entry(domain_of(&merged.hit)).or_default();
        let candidate = Candidate { hit: merged.hit, engines: merged.engines, ..Candidate::default() };
        ranked.push((!is_priority(&candidate.hit), *round, place, candidate));
        *round += 1;
    }
    ranked.sort_by_key(|(is_usual, round, place, _)| (*is_usual, *round, *place));
    ranked.into_iter().map(|(_, _, _, candidate)| candidate).take(CANDIDATES_MAX).collect()
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

    fn urls(candidates: &[Candidate]) -> Vec<&str> {
        candidates.iter().map(|candidate| candidate.hit.url.as_str()).collect()
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
}
