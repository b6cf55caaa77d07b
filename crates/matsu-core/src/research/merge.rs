//! One list out of many: results of several engines merged by reciprocal rank, the same work only once.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::address::canonical;
use super::query::fold;

/// The constant of reciprocal rank fusion: how little the very first places count for more than the next.
const RANK_OFFSET: f64 = 60.0;

/// One result of one engine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hit {
    pub url: String,
    pub title: String,
    pub snippet: String,
    pub year: Option<i32>,
    pub authors: Vec<String>,
    pub doi: Option<String>,
    /// Where the engine itself has the text (an abstract, say), it need not be fetched.
    pub abstract_text: Option<String>,
    /// What independence is counted by, where the address does not say it: `local:<top folder>`.
    pub domain: Option<String>,
}

/// A result that one or more engines named.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Merged {
    pub hit: Hit,
    pub engines: Vec<String>,
    pub score: f64,
}

/// Best first. Results without a usable address are left out. Of equal scores the one that was named first leads.
#[must_use]
pub fn merge(lists: &[(String, Vec<Hit>)]) -> Vec<Merged> {
    let mut merged: Vec<Merged> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    for (engine, hits) in lists {
        for (rank, hit) in hits.iter().enumerate() {
            let Some(url) = canonical(&hit.url) else { continue };
            let score = 1.0 / (RANK_OFFSET + f64::from(u32::try_from(rank).unwrap_or(u32::MAX)) + 1.0);
            let keys = identities(&url, hit);
            let place = match keys.iter().find_map(|key| known.get(key).copied()) {
                Some(place) => {
                    merged[place].add(engine, hit, score);
                    place
                }
                None => {
                    let hit = Hit { url, ..hit.clone() };
                    merged.push(Merged { hit, engines: vec![engine.clone()], score });
                    merged.len() - 1
                }
            };
            for key in keys {
                known.entry(key).or_insert(place);
            }
        }
    }
    merged.sort_by(|left, right| right.score.total_cmp(&left.score));
    merged
}

impl Merged {
    fn add(&mut self, engine: &str, other: &Hit, score: f64) {
        // The same engine naming a work twice does not make it better.
        if !self.engines.iter().any(|known| known == engine) {
            self.engines.push(engine.to_owned());
            self.score += score;
        }
        let hit = &mut self.hit;
        hit.doi = hit.doi.take().or_else(|| other.doi.clone());
        hit.year = hit.year.or(other.year);
        hit.abstract_text = hit.abstract_text.take().or_else(|| other.abstract_text.clone());
        if hit.authors.is_empty() {
            hit.authors.clone_from(&other.authors);
        }
        if hit.snippet.is_empty() {
            hit.snippet.clone_from(&other.snippet);
        }
    }
}

/// What a work is known by: its address, its DOI, else title with first author and year.
fn identities(url: &str, hit: &Hit) -> Vec<String> {
    let mut keys = vec![format!("url:{url}")];
    if let Some(doi) = hit.doi.as_deref().and_then(normal_doi).or_else(|| normal_doi(url)) {
        keys.push(format!("doi:{doi}"));
    } else if let (Some(author), Some(year)) = (hit.authors.first(), hit.year) {
        let title = normal_title(&hit.title);
        if !title.is_empty() {
            let surname = fold(author.split(',').next().unwrap_or_default());
            let surname = surname.split(' ').next_back().unwrap_or_default().to_owned();
            keys.push(format!("meta:{title}|{surname}|{year}"));
        }
    }
    keys
}

/// `10.…/…` in lower case, out of a bare DOI, a `doi:` or a doi.org address.
#[must_use]
pub fn normal_doi(text: &str) -> Option<String> {
    let text = text.trim().to_lowercase();
    let rest = ["https://doi.org/", "http://doi.org/", "https://dx.doi.org/", "http://dx.doi.org/", "doi:"]
        .iter()
        .find_map(|prefix| text.strip_prefix(prefix))
        .unwrap_or(&text)
        .trim();
    let (registrant, suffix) = rest.split_once('/')?;
    let digits = registrant.strip_prefix("10.")?;
    let is_doi = digits.len() >= 4 && digits.chars().all(|c| c.is_ascii_digit() || c == '.');
    (is_doi && !suffix.is_empty() && !suffix.contains(char::is_whitespace)).then(|| rest.to_owned())
}

fn normal_title(title: &str) -> String {
    fold(title).chars().filter(|c| c.is_alphanumeric()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(url: &str) -> Hit {
        Hit { url: url.to_owned(), title: url.to_owned(), ..Hit::default() }
    }

    fn work(url: &str, title: &str, author: &str, year: i32, doi: Option<&str>) -> Hit {
        Hit {
            title: title.to_owned(),
            authors: vec![author.to_owned()],
            year: Some(year),
            doi: doi.map(str::to_owned),
            ..hit(url)
        }
    }

    #[test]
    fn what_two_engines_name_leads() {
        let lists = [
            ("a".to_owned(), vec![hit("https://one.org/"), hit("https://two.org/")]),
            ("b".to_owned(), vec![hit("https://three.org/"), hit("https://two.org/#x")]),
        ];
        let merged = merge(&lists);
        let urls: Vec<&str> = merged.iter().map(|m| m.hit.url.as_str()).collect();
        assert_eq!(urls, ["https://two.org/", "https://one.org/", "https://three.org/"]);
        assert_eq!(merged[0].engines, ["a", "b"]);
        assert!((merged[0].score - 2.0 / 62.0).abs() < 1e-12);
        assert!((merged[1].score - 1.0 / 61.0).abs() < 1e-12);
    }

    #[test]
    fn the_same_work_is_one_result() {
        let same =
            |left: Hit, right: Hit| merge(&[("a".to_owned(), vec![left]), ("b".to_owned(), vec![right])]).len() == 1;
        let doi = Some("10.1000/ABC.1");
        assert!(same(
            work("https://x.org/1", "A", "B", 2020, doi),
            work("https://y.org/2", "C", "D", 2021, Some("https://doi.org/10.1000/abc.1"))
        ));
        assert!(same(
            work("https://x.org/1", "On Waiting: a Study", "Ada Smith", 2020, None),
            work("https://y.org/2", "On waiting – A study", "Smith, Ada", 2020, None)
        ));
        assert!(!same(
            work("https://x.org/1", "On Waiting", "Ada Smith", 2020, None),
            work("https://y.org/2", "On Waiting", "Ada Smith", 2021, None)
        ));
        assert!(!same(hit("https://x.org/1"), Hit { title: "https://x.org/1".to_owned(), ..hit("https://y.org/2") }));
        assert!(merge(&[("a".to_owned(), vec![hit("javascript:x")])]).is_empty());
    }

    #[test]
    fn the_same_engine_counts_once() {
        let lists = [("a".to_owned(), vec![hit("https://x.org/"), hit("https://x.org/?utm_source=q")])];
        let merged = merge(&lists);
        assert_eq!((merged.len(), merged[0].score), (1, 1.0 / 61.0));
    }

    #[test]
    fn dois_are_read_in_all_their_forms() {
        for (text, doi) in [
            ("10.1000/XYZ", Some("10.1000/xyz")),
            ("doi:10.1000/xyz", Some("10.1000/xyz")),
            ("https://doi.org/10.1000/xyz", Some("10.1000/xyz")),
            ("10.1/x", None),
            ("https://example.org/10.1000/xyz", None),
        ] {
            assert_eq!(normal_doi(text).as_deref(), doi, "{text}");
        }
    }
}
