//! Sections by topic: findings that share rare words stand together, under the heading that the best of them has in its
//! document.

use std::collections::{HashMap, HashSet};

use super::super::closeness::terms;
use super::super::passages::HEADING_DIVIDER;
use super::super::ranking::language::{Stems, is_common};
use super::{Finding, one_line};

/// Sections at most, besides the last one for what fits nowhere.
const TOPICS_MAX: usize = 6;
/// How alike a finding and a topic must be to stand together (cosine).
const ALIKE_MIN: f64 = 0.18;
/// The title of what fits nowhere.
const OTHERS: &str = "Other findings";
const TITLE_CHARS: usize = 80;

pub struct Topic<'a> {
    pub title: String,
    pub findings: Vec<&'a Finding>,
}

type Weights = HashMap<String, f64>;

/// The topics in the order of their best finding; findings keep their order inside.
#[must_use]
pub fn grouped<'a>(findings: &[&'a Finding]) -> Vec<Topic<'a>> {
    let words: Vec<HashSet<String>> = findings.iter().map(|finding| words(finding)).collect();
    let rarity = rarity(&words);
    let mut topics: Vec<(Weights, Vec<usize>)> = Vec::new();
    for (at, words) in words.iter().enumerate() {
        let mine: Weights = words.iter().map(|word| (word.clone(), rarity[word])).collect();
        let alike = topics.iter().enumerate().map(|(n, (theirs, _))| (n, cosine(&mine, theirs)));
        // Of equals the first.
        let best = alike.reduce(|best, next| if next.1 > best.1 { next } else { best });
        match best {
            Some((n, share)) if share >= ALIKE_MIN => {
                let (theirs, members) = &mut topics[n];
                mine.into_iter().for_each(|(word, weight)| *theirs.entry(word).or_default() += weight);
                members.push(at);
            }
            _ => topics.push((mine, vec![at])),
        }
    }
    let (mut named, mut others) = (Vec::new(), Vec::new());
    for (_, members) in topics {
        let together: Vec<&Finding> = members.iter().map(|at| findings[*at]).collect();
        let is_topic = members.len() > 1 && named.len() < TOPICS_MAX;
        match title(&together, &named).filter(|_| is_topic) {
            Some(title) => named.push(Topic { title, findings: together }),
            None => others.extend(members),
        }
    }
    others.sort_unstable();
    if !others.is_empty() {
        named.push(Topic { title: OTHERS.to_owned(), findings: others.iter().map(|at| findings[*at]).collect() });
    }
    named
}

/// What a finding is about: its own words and those of the headings above it.
fn words(finding: &Finding) -> HashSet<String> {
    let text = format!("{} {}", finding.text, finding.context);
    let stems = Stems::of_shown(&text);
    terms(&text).into_iter().filter(|word| !is_common(word)).map(|word| stems.stem(&word)).collect()
}

/// A word that every finding has says nothing about its topic.
fn rarity(findings: &[HashSet<String>]) -> Weights {
    let mut counts: Weights = HashMap::new();
    for word in findings.iter().flatten() {
        *counts.entry(word.clone()).or_default() += 1.0;
    }
    let all = f64::from(u32::try_from(findings.len()).unwrap_or(u32::MAX));
    counts.values_mut().for_each(|count| *count = ((all + 1.0) / *count).ln());
    counts
}

fn cosine(left: &Weights, right: &Weights) -> f64 {
    let shared: f64 = left.iter().filter_map(|(word, weight)| right.get(word).map(|other| weight * other)).sum();
    let length = |of: &Weights| of.values().map(|weight| weight * weight).sum::<f64>().sqrt();
    let lengths = length(left) * length(right);
    if lengths > 0.0 { shared / lengths } else { 0.0 }
}

/// The first heading that is not a title already, from the innermost one of the first finding outwards; else the title of
/// a document. None is left if all of them are titles.
fn title(findings: &[&Finding], taken: &[Topic<'_>]) -> Option<String> {
    let headings = findings
        .iter()
        .filter_map(|finding| finding.origins.first())
        .flat_map(|place| place.heading.rsplit(HEADING_DIVIDER).chain(std::iter::once(place.document.title.as_str())));
    headings
        .map(one_line)
        .filter(|heading| !heading.is_empty() && heading.chars().count() <= TITLE_CHARS)
        .find(|heading| taken.iter().all(|topic| topic.title != *heading))
}

#[cfg(test)]
mod tests {
    use super::super::{Finding, QuotePlace};
    use super::*;

    fn finding(text: &str, heading: &str) -> Finding {
        let place = QuotePlace { heading: heading.to_owned(), ..QuotePlace::default() };
        Finding { text: text.to_owned(), origins: vec![place], ..Finding::default() }
    }

    #[test]
    fn findings_about_the_same_stand_together_under_their_heading() {
        let all = [
            finding("The scheduler evicts pods from an unreachable node.", "Nodes › Eviction"),
            finding("Certificates of the cluster expire after one year.", "Certificates"),
            finding("Pods on an unreachable node are evicted after five minutes.", "Nodes › Eviction"),
            finding("A certificate that expires is renewed by the kubelet.", "Certificates › Renewal"),
            finding("Bananas are yellow.", "Fruit"),
        ];
        let topics = grouped(&all.iter().collect::<Vec<_>>());
        let titles: Vec<(&str, usize)> = topics.iter().map(|t| (t.title.as_str(), t.findings.len())).collect();
        assert_eq!(titles, [("Eviction", 2), ("Certificates", 2), (OTHERS, 1)]);
    }

    #[test]
    fn a_topic_has_a_heading_of_its_own_or_is_none() {
        let evicted = [
            finding("The scheduler evicts pods from an unreachable node.", "Nodes › Eviction"),
            finding("Pods on an unreachable node are evicted after five minutes.", "Nodes › Eviction"),
        ];
        let expired = |heading| {
            [
                "Certificates of the cluster expire after a year.",
                "A certificate of the cluster that expires is renewed.",
            ]
            .map(|text| finding(text, heading))
        };
        for (heading, titles) in [("Nodes › Eviction", ["Eviction", "Nodes"]), ("Eviction", ["Eviction", OTHERS])] {
            let all: Vec<Finding> = evicted.iter().cloned().chain(expired(heading)).collect();
            let topics = grouped(&all.iter().collect::<Vec<_>>());
            assert_eq!(topics.iter().map(|topic| topic.title.as_str()).collect::<Vec<_>>(), titles);
        }
    }

    #[test]
    fn one_finding_alone_needs_no_topic() {
        let all = [finding("Bananas are yellow.", "Fruit")];
        let topics = grouped(&all.iter().collect::<Vec<_>>());
        assert_eq!(topics.len(), 1);
        assert_eq!(topics[0].title, OTHERS);
    }
}
