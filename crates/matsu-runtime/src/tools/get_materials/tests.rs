//! How many claims a reply has, and how much of each.

use matsu_core::clock::Timestamp;
use matsu_core::id::{ClaimId, EdgeId, FragmentId, JobId, PageId, TaskId};
use matsu_core::ports::store::EdgeView;
use matsu_core::research::evidence::{
    Adoption, Claim, Edge, Extraction, Fragment, PageOrigin, Relation, ScorePart, SourcePage,
};
use matsu_core::research::headings::Headings;

use super::*;

const URL: &str = "https://documentation.example.org/guides/operations/a-page-with-a-long-name-about-nodes.html";

fn page(now: Timestamp) -> SourcePage {
    SourcePage {
        id: PageId::mint(now),
        url: URL.to_owned(),
        final_url: URL.to_owned(),
        domain: "example.org".to_owned(),
        owner: None,
        origin: PageOrigin::Http,
        title: String::new(),
        language: None,
        year: None,
        doi: None,
        authors: Vec::new(),
        is_primary: false,
        content_hash: String::new(),
        etag: None,
        last_modified: None,
        fetched_at: now,
    }
}

fn view(text: &str, quote: &str, context: &str, n: i64) -> ClaimView {
    let now = Timestamp::from_millis(1_700_000_000_000 + n);
    let page = page(now);
    let fragment = Fragment {
        id: FragmentId::mint(now),
        page_id: page.id.clone(),
        position: 0,
        text: text.to_owned(),
        headings: Headings::default(),
        offset: 0,
        hash: String::new(),
        sketch: 0,
    };
    let claim = Claim {
        id: ClaimId::mint(now),
        task_id: TaskId::mint(now),
        job_id: JobId::mint(now),
        text: text.to_owned(),
        quote: quote.to_owned(),
        fragment_id: fragment.id.clone(),
        context: context.to_owned(),
        relevance: 9_000,
        parts: vec![ScorePart { name: "words".to_owned(), thousandths: 1_250 }],
        extraction: Extraction::Extractive,
        adoption: Adoption::Adopted,
        rejection_reason: None,
        created_at: now,
    };
    let edge = Edge {
        id: EdgeId::mint(now),
        claim_id: claim.id.clone(),
        fragment_id: fragment.id.clone(),
        relation: Relation::Origin,
        probability: 1.0,
        stance: None,
        calibration_version: 0,
        is_corrected: false,
        created_at: now,
    };
    let edges = vec![EdgeView { edge, fragment, page }];
    ClaimView { claim, confidence: 500, uncertainty: 289, controversy: 0, edges, cursor: n }
}

/// The reports of one reply to a call for these claims.
fn reply(claims: Vec<ClaimView>, options: &Options) -> (Vec<ClaimReport>, Option<i64>) {
    let found = Materials { total: i64::try_from(claims.len()).unwrap(), claims, next: None };
    let fit = Fit::of(&found, options, MATERIALS_LIMIT_DEFAULT);
    let reports = fit.claims.iter().map(|view| ClaimReport::of(view, options.detail(), &fit.shown)).collect();
    (reports, fit.next)
}

#[test]
fn a_compact_reply_has_twenty_five_claims_however_long_they_are() {
    let english = "The controller of the cluster waits for the node before it ends the pod. ".repeat(10);
    let english = english.trim();
    let japanese = "節点に届かないあいだ、管理部は五分のあいだ待ってから、その上の処理を終わらせる。".repeat(12);
    let context = "Operations › Nodes › What happens when a node is lost › ".repeat(6);
    let context = context.trim();
    for (text, quote) in [
        (english, english),
        (japanese.as_str(), japanese.as_str()),
        (english, &english[1..]),
        (japanese.as_str(), &japanese[3..]),
    ] {
        let claims: Vec<ClaimView> = (0..30).map(|n| view(text, quote, context, n)).collect();
        let (reports, next) = reply(claims, &Options::default());
        let bytes = serde_json::to_string(&reports).unwrap().len();
        assert!(reports.len() >= CLAIMS_MIN && bytes <= 16 * 1024, "{} claims, {bytes} bytes", reports.len());
        assert!(reports.iter().all(|report| report.is_cut && report.text.chars().count() >= 79), "{:?}", reports[0]);
        assert_eq!(next.is_some(), reports.len() < 30);
        let full = Options { detail: Some(HowMuch::Full), ..Options::default() };
        let (reports, _) = reply(vec![view(text, quote, context, 1)], &full);
        assert_eq!((reports[0].text.as_str(), reports[0].is_cut), (text, false), "details are whole");
        assert_eq!(reports[0].context, context);
    }
}

#[test]
fn a_compact_reply_of_few_or_short_claims_is_whole() {
    let long = "The controller of the cluster waits for the node before it ends the pod. ".repeat(10);
    let long = long.trim();
    let (reports, _) = reply((0..5).map(|n| view(long, long, "Nodes", n)).collect(), &Options::default());
    assert!(reports.len() == 5 && reports.iter().all(|report| !report.is_cut && report.text == long));
    let short = "Pods are evicted after five minutes.";
    let (reports, _) = reply((0..30).map(|n| view(short, short, "Nodes", n)).collect(), &Options::default());
    assert!(reports.len() == 30 && reports.iter().all(|report| !report.is_cut && report.text == short));
}

#[test]
fn the_parts_of_a_score_are_in_the_details() {
    let claim = view("Pods are evicted.", "Pods are evicted.", "", 1);
    let full = Options { detail: Some(HowMuch::Full), ..Options::default() };
    let (reports, _) = reply(vec![claim.clone()], &full);
    let shown = serde_json::to_value(&reports[0]).unwrap();
    assert_eq!(shown["score_parts"], serde_json::json!([{ "name": "words", "value": 1.25 }]));
    let (reports, _) = reply(vec![claim], &Options::default());
    assert!(reports[0].score_parts.is_none());
}
