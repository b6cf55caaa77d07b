//! Search engines at the wire: SearXNG's JSON API and OpenAlex's works, in the shapes the real ones answer with.

use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use serde_json::{Value, json};

use super::library::{LANGUAGES, Page, TOPICS};
use super::{SITES, address};

/// How an engine answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mood {
    #[default]
    Well,
    /// Nothing is found.
    Empty,
    /// 429 with `Retry-After`.
    Busy,
    /// 403.
    Refusing,
    /// 500.
    Broken,
    /// 401.
    Locked,
    /// Well, but one of its own engines did not respond.
    Halting,
    /// 429 with `Retry-After` of one second, then well.
    BusyOnce,
    /// 200 with something that is not JSON.
    Babbling,
    /// Well, but only after this many milliseconds.
    Slow(u64),
}

impl Mood {
    /// The answer of an engine that does not do its work.
    pub fn answer(self) -> Option<Response> {
        Some(match self {
            Self::Well | Self::Slow(_) | Self::Empty | Self::Halting => return None,
            Self::Busy => (StatusCode::TOO_MANY_REQUESTS, [(header::RETRY_AFTER, "30")], "").into_response(),
            Self::BusyOnce => (StatusCode::TOO_MANY_REQUESTS, [(header::RETRY_AFTER, "1")], "").into_response(),
            Self::Locked => StatusCode::UNAUTHORIZED.into_response(),
            Self::Refusing => StatusCode::FORBIDDEN.into_response(),
            Self::Broken => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
            Self::Babbling => Html("<html>no JSON here</html>").into_response(),
        })
    }
}

fn fold(text: &str) -> String {
    text.to_lowercase()
}

/// Pages that share words with the query, best first; words of scripts without spaces are looked for as they are.
fn find(query: &str, language: Option<&str>) -> Vec<Page> {
    let query = fold(query);
    let words: Vec<&str> = query.split_whitespace().collect();
    let mut found: Vec<(usize, Page)> = (0..SITES)
        .flat_map(Page::all)
        .filter(|page| language.is_none_or(|tag| tag == "all" || tag.starts_with(LANGUAGES[page.language])))
        .map(|page| {
            let text = fold(&format!("{} {} {}", page.title(), page.lead(), page.paragraphs().join(" ")));
            (words.iter().filter(|word| text.contains(*word)).count(), page)
        })
        .filter(|(score, _)| *score > 0)
        .collect();
    // Of equal pages every site has its first before any has its second.
    found.sort_by_key(|(score, page)| (std::cmp::Reverse(*score), page.number, page.language, page.site));
    found.into_iter().map(|(_, page)| page).collect()
}

/// SearXNG's `/search`. A query that has addresses in it finds these and nothing else.
pub fn searxng(port: u16, query: &str, language: Option<&str>, mood: Mood) -> Response {
    let is_empty = mood == Mood::Empty;
    let silent = if mood == Mood::Halting { json!([["othersearch", "timeout"]]) } else { json!([]) };
    let named: Vec<&str> = query.split_whitespace().filter(|word| word.starts_with("http://")).collect();
    let found = if is_empty || !named.is_empty() { Vec::new() } else { find(query, language) };
    let named = named.iter().map(|url| json!({ "url": url, "title": url, "content": "" }));
    let library = found.iter().take(40).enumerate().map(|(place, page)| {
        json!({
            "url": format!("http://{}{}", address(page.site, port), page.path()),
            "title": page.title(),
            "content": page.lead(),
            "publishedDate": "2026-01-02T00:00:00",
            "engine": "test",
            "engines": ["test"],
            "positions": [place + 1],
            "score": 1.0 / f64::from(u32::try_from(place + 1).unwrap_or(u32::MAX)),
            "category": "general",
        })
    });
    let results: Vec<Value> = named.chain(library).collect();
    let total = results.len();
    Json(json!({
        "query": query, "number_of_results": total, "results": results, "answers": [], "corrections": [],
        "infoboxes": [], "suggestions": [], "unresponsive_engines": silent,
    }))
    .into_response()
}

/// OpenAlex's `/works`.
pub fn openalex(port: u16, query: &str, is_empty: bool) -> Response {
    let words: Vec<String> = fold(query).split_whitespace().map(str::to_owned).collect();
    let works: Vec<Value> = TOPICS
        .iter()
        .enumerate()
        .filter(|(_, topic)| !is_empty && words.iter().any(|word| fold(topic.words[0].name).contains(word.as_str())))
        .map(|(number, topic)| {
            let page = Page { site: 4, language: 0, topic: number, number: 0 };
            json!({
                "id": format!("https://openalex.org/W10000000{number}"),
                "doi": format!("https://doi.org/10.5555/matsu.{number}"),
                "display_name": topic.words[0].name,
                "publication_year": 2025,
                "authorships": [{"author_position": "first", "author": {"id": "https://openalex.org/A1", "display_name": "Ada Writer"}}],
                "abstract_inverted_index": inverted(&page.paragraphs()[0]),
                "primary_location": {"is_oa": true, "landing_page_url": format!("http://{}{}", address(4, port), page.path())},
            })
        })
        .collect();
    Json(json!({"meta": {"count": works.len(), "page": 1, "per_page": 25}, "results": works, "group_by": []}))
        .into_response()
}

fn inverted(text: &str) -> Value {
    let mut index = serde_json::Map::new();
    for (place, word) in text.split_whitespace().enumerate() {
        let places = index.entry(word).or_insert_with(|| json!([]));
        if let Some(places) = places.as_array_mut() {
            places.push(json!(place));
        }
    }
    Value::Object(index)
}
