//! The engines over HTTP against the test site's own, and the list against the folder.

use matsu_core::ports::search_engine::{EngineError, EngineRequest, SearchEngine};
use matsu_core::principal::Principal;
use matsu_testkit::test_site::{Mood, TestSite};

use super::{EngineSettings, WEB_ENGINES, openalex::OpenAlex, searxng::Searxng};

fn request(query: &str, language: Option<&str>) -> EngineRequest {
    EngineRequest {
        query: query.to_owned(),
        language: language.map(str::to_owned),
        hits_max: 5,
        owner: Principal::local_user(),
        folders: Vec::new(),
    }
}

#[test]
fn every_engine_on_the_network_is_made_from_its_entry() {
    for entry in WEB_ENGINES {
        let with = EngineSettings { address: "http://127.0.0.1:1", user_agent: "Matsu/test", contact: None };
        let engine = (entry.make)(with).expect("an engine");
        assert_eq!(entry.setting, format!("research.{}", engine.name()));
        let file = format!("{}/src/engines/{}.rs", env!("CARGO_MANIFEST_DIR"), engine.name());
        assert!(std::path::Path::new(&file).exists(), "{file}");
    }
}

#[tokio::test]
async fn searxng_finds_in_the_language_asked_for() {
    let site = TestSite::start().expect("a site");
    let engine = Searxng::new(&site.searxng(), "Matsu/test").expect("an engine");
    let hits = engine.search(&request("緑茶", Some("ja"))).await.expect("hits").hits;
    assert_eq!(hits.len(), 5);
    assert!(hits.iter().all(|hit| hit.url.contains("/ja/green-tea/") && hit.year == Some(2026)));
    assert!(engine.search(&request("zebra", None)).await.expect("an answer").hits.is_empty());
    let visit = site.visits_to("/searxng").pop().expect("a visit");
    assert_eq!(visit.headers["user-agent"], "Matsu/test");
}

#[tokio::test]
async fn openalex_brings_abstracts() {
    let site = TestSite::start().expect("a site");
    let engine = OpenAlex::new(&site.openalex(), "Matsu/test", Some("me@example.org".to_owned())).expect("an engine");
    let hits = engine.search(&request("green tea", Some("en-GB"))).await.expect("hits").hits;
    assert_eq!(hits.len(), 1);
    assert!(
        hits[0].abstract_text.as_deref().is_some_and(|text| text.starts_with("Drinking green tea every day lowers"))
    );
    assert_eq!(hits[0].doi.as_deref(), Some("10.5555/matsu.1"));
    let visit = site.visits_to("/openalex").pop().expect("a visit");
    assert!(visit.path.contains("mailto=me%40example.org") && visit.path.contains("language%3Aen"), "{}", visit.path);
}

#[tokio::test]
async fn failures_say_what_to_do_next() {
    let site = TestSite::start().expect("a site");
    let engine = Searxng::new(&site.searxng(), "Matsu/test").expect("an engine");
    for (mood, is_expected) in [
        (
            Mood::Busy,
            (|error| matches!(error, EngineError::RateLimited { retry_after: Some(_) })) as fn(&EngineError) -> bool,
        ),
        (Mood::Refusing, |error| matches!(error, EngineError::Blocked(_))),
        (Mood::Broken, |error| matches!(error, EngineError::Failed(_))),
        (Mood::Babbling, |error| matches!(error, EngineError::Failed(_))),
    ] {
        site.set_mood("searxng", mood);
        let error = engine.search(&request("token", None)).await.expect_err("a failure");
        assert!(is_expected(&error), "{mood:?}: {error:?}");
    }
    let gone = Searxng::new("http://127.0.0.1:9", "Matsu/test").expect("an engine");
    assert!(matches!(gone.search(&request("x", None)).await, Err(EngineError::Failed(_))));
}
