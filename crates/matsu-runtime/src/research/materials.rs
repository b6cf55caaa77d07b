//! What a research task has to show: claims with their evidence, as data or as prose with numbered sources.

use schemars::JsonSchema;
use serde::Serialize;

use matsu_core::job::end;
use matsu_core::plain_text::plain;
use matsu_core::ports::store::{ClaimView, EdgeView};
use matsu_core::research::confidence::{Vote, counted};
use matsu_core::research::evidence::{Adoption, Claim, Relation, ScorePart};
use matsu_core::research::report::Verification;

/// Characters of one claim's text or quote: a sentence that was picked as a claim is not longer.
const TEXT_SHOWN_MAX: usize = 800;

/// How much of each claim a list shows, in characters.
#[derive(Clone, Copy, Debug)]
pub struct Shown {
    text: usize,
    quote: usize,
    context: usize,
    /// Addresses of other documents that state the same.
    also: usize,
}

impl Shown {
    const ALL: Self = Self { text: TEXT_SHOWN_MAX, quote: TEXT_SHOWN_MAX, context: TEXT_SHOWN_MAX, also: 3 };
    /// For compact lists: the first with which the list has enough claims.
    pub const LEVELS: [Self; 6] = [
        Self { text: TEXT_SHOWN_MAX, quote: TEXT_SHOWN_MAX, context: 160, also: 3 },
        Self { text: TEXT_SHOWN_MAX, quote: 200, context: 60, also: 2 },
        Self { text: 300, quote: 100, context: 60, also: 1 },
        Self { text: 200, quote: 60, context: 40, also: 1 },
        Self { text: 120, quote: 0, context: 30, also: 0 },
        Self { text: 80, quote: 0, context: 0, also: 0 },
    ];
}
/// Characters of a fragment in a list: the first of these with which a claim fits into a reply.
pub const FRAGMENT_SHOWN: [usize; 4] = [500, 250, 120, 60];

/// How much is said about each claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// The claim, its source, and how many passages support or refute it.
    Compact,
    /// Also each of these passages, and every figure.
    Full,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ClaimReport {
    pub id: String,
    pub text: String,
    /// How likely it answers the question, from 0 to 1.
    pub relevance: f64,
    /// Headings and the lead-in of a list, if it needs them.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub context: String,
    /// From 0 to 1. Absent: no passage of another source counts, so nothing is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uncertainty: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controversy: Option<f64>,
    /// unverified (no passage of another source counts), supported, refuted or contested
    pub verification: String,
    /// Other sources that support or refute it.
    pub evidence_count: usize,
    /// Absent: no passage refutes it.
    #[serde(skip_serializing_if = "is_false")]
    pub has_refutation: bool,
    /// rejected, by a person; else absent in a compact list
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adoption: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejection_reason: Option<String>,
    /// extractive or model; with detail full
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extraction: Option<String>,
    /// What the relevance was made of, the largest part first; with detail full, if no model made the claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score_parts: Option<Vec<ScorePartReport>>,
    /// Text, quote or context is shortened so that the reply has more claims; with detail full they are whole.
    #[serde(skip_serializing_if = "is_false")]
    pub is_cut: bool,
    pub origin: OriginReport,
    /// Passages of other sources with their stance, neutral ones last; with detail full.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Vec<EvidenceReport>>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ScorePartReport {
    /// What was compared.
    pub name: String,
    /// What it added to the score; below 0 it speaks against the sentence.
    pub value: f64,
}

#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct OriginReport {
    /// With detail full.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edge_id: Option<String>,
    /// With detail full.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fragment_id: Option<String>,
    /// Absent if the text is the quote.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quote: Option<String>,
    pub url: String,
    /// Other documents that state the same.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<String>,
    /// With detail full.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The source under which it is counted; with detail full.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct EvidenceReport {
    pub edge_id: String,
    /// supports, refutes or neutral
    pub relation: String,
    pub probability: f64,
    pub fragment_id: String,
    pub url: String,
    pub title: String,
    pub domain: String,
    pub is_primary: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub year: Option<i32>,
    #[serde(skip_serializing_if = "is_false")]
    pub is_corrected: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_false(value: &bool) -> bool {
    !*value
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FragmentReport {
    pub id: String,
    pub text: String,
    /// The passage is longer; a reply of at most 3 claims shows it whole.
    #[serde(skip_serializing_if = "is_false")]
    pub is_cut: bool,
    pub heading: String,
    pub page_id: String,
    pub url: String,
    pub offset: u32,
}

#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct GraphReport {
    pub nodes: Vec<GraphNode>,
    pub edges: Vec<GraphEdge>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct GraphNode {
    pub id: String,
    /// claim, fragment or page
    pub kind: String,
    pub label: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct GraphEdge {
    pub id: String,
    pub source: String,
    pub target: String,
    /// origin, supports, refutes, neutral or part_of
    pub relation: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
}

/// A figure that is stored in thousandths.
fn from_thousandths(value: u32) -> f64 {
    f64::from(value) / 1000.0
}

impl ClaimReport {
    #[must_use]
    pub fn of(view: &ClaimView, detail: Detail, shown: &Shown) -> Self {
        let claim = &view.claim;
        let is_full = detail == Detail::Full;
        let shown = if is_full { &Shown::ALL } else { shown };
        let is_longer = |text: &str, chars_max: usize| text.chars().nth(chars_max).is_some();
        let has_quote = is_full || claim.quote != claim.text;
        let counting = counting(view);
        let count = |relation| counting.iter().filter(|edge| edge.edge.relation == relation).count();
        let (supporting, refuting) = (count(Relation::Supports), count(Relation::Refutes));
        let is_weighed = supporting + refuting > 0;
        let origins = || view.edges.iter().filter(|edge| edge.edge.relation == Relation::Origin);
        let origin = origins().find(|edge| edge.fragment.id == claim.fragment_id).or_else(|| origins().next());
        let of_others = |edge: &&EdgeView| edge.edge.relation != Relation::Origin;
        Self {
            id: claim.id.to_string(),
            text: clip(&claim.text, shown.text),
            relevance: f64::from(claim.relevance) / 10_000.0,
            context: clip(&claim.context, shown.context),
            confidence: is_weighed.then(|| from_thousandths(view.confidence)),
            uncertainty: (is_weighed && is_full).then(|| from_thousandths(view.uncertainty)),
            controversy: (is_weighed && is_full).then(|| from_thousandths(view.controversy)),
            verification: verification(&counting).to_string(),
            evidence_count: supporting + refuting,
            has_refutation: refuting > 0,
            adoption: (is_full || claim.adoption == Adoption::Rejected).then(|| claim.adoption.to_string()),
            rejection_reason: claim.rejection_reason.as_deref().map(plain),
            extraction: is_full.then(|| claim.extraction.to_string()),
            score_parts: (is_full && !claim.parts.is_empty()).then(|| score_parts(claim)),
            is_cut: is_longer(&claim.text, shown.text)
                || is_longer(&claim.context, shown.context)
                || has_quote && is_longer(&claim.quote, shown.quote),
            origin: origin.map_or_else(OriginReport::default, |edge| OriginReport {
                edge_id: is_full.then(|| edge.edge.id.to_string()),
                fragment_id: is_full.then(|| edge.fragment.id.to_string()),
                quote: (has_quote && shown.quote > 0).then(|| clip(&claim.quote, shown.quote)),
                url: edge.page.url.clone(),
                also: also(view, edge, shown.also),
                title: is_full.then(|| clip(&edge.page.title, 120)),
                domain: is_full.then(|| edge.page.domain.clone()),
            }),
            evidence: is_full.then(|| view.edges.iter().filter(of_others).map(EvidenceReport::of).collect()),
        }
    }
}

fn score_parts(claim: &Claim) -> Vec<ScorePartReport> {
    let part =
        |part: &ScorePart| ScorePartReport { name: part.name.clone(), value: f64::from(part.thousandths) / 1000.0 };
    claim.parts.iter().map(part).collect()
}

/// The passages that count for a claim's figures: one for each source.
pub(super) fn counting(view: &ClaimView) -> Vec<&EdgeView> {
    let vote = |edge: &EdgeView| Vote {
        relation: edge.edge.relation,
        probability: edge.edge.probability,
        source: edge.page.domain.clone(),
        is_corrected: edge.edge.is_corrected,
    };
    let votes: Vec<Vote> = view.edges.iter().map(vote).collect();
    counted(&votes).into_iter().filter_map(|at| view.edges.get(at)).collect()
}

/// What other sources make of a claim.
fn verification(counting: &[&EdgeView]) -> Verification {
    let count = |relation| counting.iter().filter(|edge| edge.edge.relation == relation).count();
    Verification::of(count(Relation::Supports), count(Relation::Refutes))
}

/// Addresses of the other documents that state the claim.
fn also(view: &ClaimView, own: &EdgeView, shown_max: usize) -> Vec<String> {
    let others = view.edges.iter().filter(|edge| edge.edge.relation == Relation::Origin);
    let mut urls: Vec<String> = Vec::new();
    for url in others.map(|edge| &edge.page.url).filter(|url| **url != own.page.url) {
        if urls.len() < shown_max && !urls.contains(url) {
            urls.push(url.clone());
        }
    }
    urls
}

impl EvidenceReport {
    fn of(view: &EdgeView) -> Self {
        Self {
            edge_id: view.edge.id.to_string(),
            relation: view.edge.relation.to_string(),
            probability: matsu_core::research::confidence::round3(view.edge.probability),
            fragment_id: view.fragment.id.to_string(),
            url: view.page.url.clone(),
            title: clip(&view.page.title, 120),
            domain: view.page.domain.clone(),
            is_primary: view.page.is_primary,
            year: view.page.year,
            is_corrected: view.edge.is_corrected,
        }
    }
}

/// The fragments these claims stand on, each once, cut to a number of characters.
#[must_use]
pub fn fragments(claims: &[ClaimView], shown_max: usize) -> Vec<FragmentReport> {
    let mut reports: Vec<FragmentReport> = Vec::new();
    for edge in claims.iter().flat_map(|claim| &claim.edges) {
        if reports.iter().any(|known| known.id == edge.fragment.id.as_str()) {
            continue;
        }
        reports.push(FragmentReport {
            id: edge.fragment.id.to_string(),
            text: clip(&edge.fragment.text, shown_max),
            is_cut: edge.fragment.text.chars().nth(shown_max).is_some(),
            heading: plain(edge.fragment.headings.above()),
            page_id: edge.page.id.to_string(),
            url: edge.page.url.clone(),
            offset: edge.fragment.offset,
        });
    }
    reports
}

/// Claims, fragments and pages as nodes, and what joins them.
#[must_use]
pub fn graph(claims: &[ClaimView]) -> GraphReport {
    let mut graph = GraphReport::default();
    for view in claims {
        let is_weighed = verification(&counting(view)) != Verification::Unverified;
        let confidence = is_weighed.then(|| from_thousandths(view.confidence));
        graph.node(view.claim.id.as_str(), "claim", &view.claim.text, confidence, None);
        for edge in &view.edges {
            let (fragment, page) = (edge.fragment.id.as_str(), edge.page.id.as_str());
            if graph.node(fragment, "fragment", &edge.fragment.text, None, None) {
                graph.edges.push(GraphEdge {
                    id: format!("{fragment}/{page}"),
                    source: fragment.to_owned(),
                    target: page.to_owned(),
                    relation: "part_of".to_owned(),
                    probability: None,
                });
            }
            graph.node(page, "page", &edge.page.title, None, Some(edge.page.url.clone()));
            graph.edges.push(GraphEdge {
                id: edge.edge.id.to_string(),
                source: fragment.to_owned(),
                target: view.claim.id.to_string(),
                relation: edge.edge.relation.to_string(),
                probability: Some(matsu_core::research::confidence::round3(edge.edge.probability)),
            });
        }
    }
    graph
}

impl GraphReport {
    /// `true`: it was not there yet.
    fn node(&mut self, id: &str, kind: &str, label: &str, confidence: Option<f64>, url: Option<String>) -> bool {
        if self.nodes.iter().any(|node| node.id == id) {
            return false;
        }
        let (id, kind, label) = (id.to_owned(), kind.to_owned(), clip(label, 80));
        self.nodes.push(GraphNode { id, kind, label, confidence, url });
        true
    }
}

/// Markdown: each claim with the evidence for and against it, and the sources numbered in the order they are met.
#[must_use]
pub fn narrative(question: &str, claims: &[ClaimView], total: i64) -> String {
    let mut sources: Vec<(String, String)> = Vec::new();
    let mut number = |edge: &EdgeView| {
        let url = &edge.page.url;
        let at = sources.iter().position(|(known, _)| known == url).unwrap_or_else(|| {
            sources.push((url.clone(), edge.page.title.clone()));
            sources.len() - 1
        });
        format!("[{}]", at + 1)
    };
    let mut text = format!("# {}\n\n", one_line(question));
    if claims.is_empty() {
        text.push_str("No claims were found.\n");
    }
    for view in claims {
        let (counting, all): (Vec<&EdgeView>, Vec<&EdgeView>) = (counting(view), view.edges.iter().collect());
        let mut cited = |relation| {
            // Every place where it stands, and of each other source the passage that counts.
            let edges = if relation == Relation::Origin { &all } else { &counting };
            let of_it = edges.iter().filter(|edge| edge.edge.relation == relation);
            let mut numbers: Vec<String> = of_it.map(|edge| number(edge)).collect();
            numbers.dedup();
            numbers.concat()
        };
        let (origin, support, against) = (cited(Relation::Origin), cited(Relation::Supports), cited(Relation::Refutes));
        let claim = one_line(&clip(&view.claim.text, TEXT_SHOWN_MAX));
        // A number that no passage of another source has moved would say more than is known.
        let weighed = match verification(&counting) {
            Verification::Unverified => "unverified".to_owned(),
            _ => format!("confidence {:.3}", from_thousandths(view.confidence)),
        };
        text.push_str(&format!("- {claim} {origin} ({weighed}"));
        if !support.is_empty() {
            text.push_str(&format!("; supported by {support}"));
        }
        if !against.is_empty() {
            text.push_str(&format!("; refuted by {against}"));
        }
        if view.claim.adoption == Adoption::Rejected {
            text.push_str("; rejected by a person");
        }
        text.push_str(")\n");
    }
    let shown = i64::try_from(claims.len()).unwrap_or(i64::MAX);
    if total > shown {
        text.push_str(&format!("\n{shown} of {total} claims; the rest with next_cursor.\n"));
    }
    text.push_str("\n## Sources\n\n");
    for (n, (url, title)) in sources.iter().enumerate() {
        text.push_str(&format!("{}. {} <{url}>\n", n + 1, one_line(title)));
    }
    text
}

/// Page text is data: a line break in it must not become structure.
fn one_line(text: &str) -> String {
    plain(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Text of a page as far as it is shown, without what a terminal would obey.
fn clip(text: &str, chars_max: usize) -> String {
    end::clip(&plain(text), chars_max)
}
