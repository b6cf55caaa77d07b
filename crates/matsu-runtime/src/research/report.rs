//! The report of a task, from what the store has of it; and a citation in its context.

use matsu_core::budget::BudgetLine;
use matsu_core::job::{Job, JobState};
use matsu_core::limits::{MATERIALS_LIMIT_MAX, REPORT_CLAIMS_MAX, REPORT_PAGES_MAX, SEARCHES_LISTED_MAX};
use matsu_core::plain_text::{plain, plain_line};
use matsu_core::ports::store::{
    ClaimView, EdgeView, FragmentsOf, MaterialsWish, Only, PagesOf, ReadBudget, ReadEvidenceTotals, ReadMaterials,
    ReadSearches, ReportJobs, SearchRow, SearchWish, StoreError,
};
use matsu_core::research::agreement::closest_sentence;
use matsu_core::research::evidence::{Claim, Relation};
use matsu_core::research::quote::find_quote;
use matsu_core::research::report::written::Written;
use matsu_core::research::report::{DocumentFacts, Finding, Material, PageRead, QuotePlace, Report, Searched, build};
use matsu_core::research::search::{ResearchConfig, SearchTally};
use matsu_core::task::Task;
use serde::Serialize;

use crate::runtime::Runtime;

use super::materials::counting;
use super::model_calls;
use super::state::{is_about_page, skipped};
use super::status_view::{BudgetView, model_warnings, query_of, status_of, verification_warnings};

/// The setting is `auto`, and no person was asked yet.
const NO_CHOICE: &str = "research.model is auto and no model was chosen, so no text was sent to a model; choose one \
    with `matsu research` on a terminal, or on the page Research";
/// The newest report jobs of a task that are looked through for what a model wrote.
const REPORT_JOBS_READ: u32 = 10;

/// The report of a research task.
///
/// # Errors
/// The store does not answer.
pub async fn of(runtime: &Runtime, task: &Task) -> Result<Report, StoreError> {
    Ok(build(material(runtime, task).await?))
}

/// Everything that a report is made from.
pub(super) async fn material(runtime: &Runtime, task: &Task) -> Result<Material, StoreError> {
    let store = runtime.store();
    let config: ResearchConfig = serde_json::from_str(&task.config_json).unwrap_or_default();
    let (claims, claims_total) = claims_of(runtime, task).await?;
    let wish = SearchWish { changed_since: None, rows_max: SEARCHES_LISTED_MAX };
    let list = store.run(ReadSearches { task_id: task.id.clone(), wish }).await?;
    let pages = store.run(PagesOf { task_id: task.id.clone(), rows_max: REPORT_PAGES_MAX }).await?;
    let mut notes: Vec<String> = verification_warnings(&list)
        .into_iter()
        .chain(model_warnings(&list.rows))
        .map(|warning| warning.trim_start_matches("[warning] ").to_owned())
        .collect();
    let all = usize::try_from(store.run(ReadEvidenceTotals(task.id.clone())).await?.claims).unwrap_or(0);
    if all > claims_total {
        notes.push(format!("{} claims are left out: rejected by a person", all - claims_total));
    }
    notes.extend(model_calls::quota_waits(runtime, task).await?);
    notes.extend(model_use(&store.run(ReadBudget(task.id.clone())).await?));
    let (written, trouble) = written(runtime, task).await?;
    notes.extend(trouble);
    if !task.status.is_terminal() && task.counts.unfinished() > 0 {
        notes.push("the research is not finished; this is what it has so far".to_owned());
    }
    if let Some(kit) = runtime.research() {
        notes.extend(kit.model().judge.limits().filter(|_| !claims.is_empty()));
        let is_open = kit.choice.as_ref().is_some_and(|choice| choice.chosen().is_none());
        notes.extend(is_open.then(|| NO_CHOICE.to_owned()));
    }
    Ok(Material {
        question: plain(&config.question),
        findings: claims.iter().map(finding).collect(),
        claims_total,
        searches: list.rows.iter().map(searched).collect(),
        pages: pages.into_iter().map(|page| PageRead { url: page.url, title: plain_line(&page.title) }).collect(),
        written,
        notes,
    })
}

/// What the models of this task have used.
fn model_use(lines: &[BudgetLine]) -> Option<String> {
    let budget = BudgetView::of(lines);
    let tokens = budget.model_tokens?;
    let cost = budget.model_cost.map_or_else(String::new, |cost| format!(", which cost {cost:.4}"));
    Some(format!("the models of this research used {tokens} tokens{cost}"))
}

/// The claims that no person rejected, best first, as many as a report looks at; and how many there are.
async fn claims_of(runtime: &Runtime, task: &Task) -> Result<(Vec<ClaimView>, usize), StoreError> {
    let mut claims: Vec<ClaimView> = Vec::new();
    let mut after = None;
    loop {
        let wish = MaterialsWish { only: Only::Adopted, confidence_min: None, after, rows_max: MATERIALS_LIMIT_MAX };
        let found = runtime.store().run(ReadMaterials { task_id: task.id.clone(), wish }).await?;
        claims.extend(found.claims);
        after = found.next;
        if after.is_none() || claims.len() >= REPORT_CLAIMS_MAX {
            return Ok((claims, usize::try_from(found.total).unwrap_or(0)));
        }
    }
}

/// What a model wrote last, and what became of a later attempt.
async fn written(runtime: &Runtime, task: &Task) -> Result<(Option<Written>, Option<String>), StoreError> {
    let jobs = runtime.store().run(ReportJobs { task_id: task.id.clone(), rows_max: REPORT_JOBS_READ }).await?;
    let last = jobs.iter().find_map(|job| Some((job, text_of(job)?)));
    let is_last = last.as_ref().is_some_and(|(job, _)| jobs.first().is_some_and(|newest| newest.id == job.id));
    let trouble = jobs.first().filter(|_| !is_last).and_then(trouble_of);
    Ok((last.map(|(_, written)| written), trouble))
}

/// What the model wrote in a job that is over.
fn text_of(job: &Job) -> Option<Written> {
    let output = job.output_json.as_deref().filter(|_| job.state == JobState::Completed)?;
    let mut written: Written = serde_json::from_str(output).ok()?;
    let sections = written.sections.iter_mut();
    for sentence in written.answer.iter_mut().chain(sections.flat_map(|section| &mut section.sentences)) {
        sentence.text = plain(&sentence.text);
    }
    for section in &mut written.sections {
        section.title = plain_line(&section.title);
    }
    Some(written)
}

/// Why the newest report job has no text.
fn trouble_of(job: &Job) -> Option<String> {
    match job.state {
        JobState::Failed => {
            let why = job.error_message.clone().unwrap_or_default();
            Some(format!("the model did not write the report from the latest claims: {why}"))
        }
        JobState::Completed | JobState::Cancelled => None,
        _ => Some("a model is writing the report from the latest claims".to_owned()),
    }
}

fn finding(view: &ClaimView) -> Finding {
    let claim = &view.claim;
    let counting = counting(view);
    let of = |relation| -> Vec<QuotePlace> {
        let of_it = counting.iter().filter(|edge| edge.edge.relation == relation);
        of_it.map(|edge| place(edge, claim, None)).collect()
    };
    let origins = view.edges.iter().filter(|edge| edge.edge.relation == Relation::Origin).map(|edge| {
        let own_quote = (edge.fragment.id == claim.fragment_id).then_some(claim.quote.as_str());
        place(edge, claim, own_quote)
    });
    let (supports, refutes) = (of(Relation::Supports), of(Relation::Refutes));
    let is_weighed = !supports.is_empty() || !refutes.is_empty();
    let mut origins: Vec<QuotePlace> = origins.collect();
    origins.sort_by_key(|place| place.fragment_id != claim.fragment_id.as_str());
    Finding {
        claim_id: claim.id.to_string(),
        same: Vec::new(),
        text: plain(&claim.text),
        context: plain(&claim.context),
        relevance: f64::from(claim.relevance) / 10_000.0,
        confidence: is_weighed.then(|| f64::from(view.confidence) / 1000.0),
        origins,
        supports,
        refutes,
    }
}

/// Where an edge's fragment stands, with the sentence of it that is closest to the claim.
fn place(edge: &EdgeView, claim: &Claim, quote: Option<&str>) -> QuotePlace {
    let (page, fragment) = (&edge.page, &edge.fragment);
    let quote = quote.unwrap_or_else(|| closest_sentence(&claim.text, &fragment.text));
    QuotePlace {
        fragment_id: fragment.id.to_string(),
        quote: plain(quote),
        heading: plain(fragment.headings.of_quote(&fragment.text, quote, &claim.context)),
        passage: fragment.position + 1,
        document: DocumentFacts {
            url: page.url.clone(),
            title: plain_line(&page.title),
            source: plain_line(&page.domain),
            authors: page.authors.iter().map(|author| plain_line(author)).collect(),
            year: page.year,
            doi: page.doi.clone(),
            read_at: page.fetched_at,
        },
    }
}

fn searched(row: &SearchRow) -> Searched {
    let none = SearchTally::default();
    let tally = row.tally.as_ref().unwrap_or(&none);
    let code = row.job.error_code.clone().or_else(|| tally.error_code.clone());
    // Why it fell short is its last note; the others are about single pages.
    let why = tally.notes.last().filter(|note| code.is_some() && !is_about_page(note)).cloned();
    let error = match (code, row.job.error_message.clone().or(why)) {
        (Some(code), Some(message)) => Some(format!("{code}: {message}")),
        (code, message) => code.or(message),
    };
    Searched {
        query: plain_line(&query_of(&row.job)),
        status: status_of(row).to_string(),
        engines: tally.engines.clone(),
        engines_failed: tally
            .engines_failed
            .iter()
            .map(|one| plain_line(&format!("{}: {}", one.engine, one.reason)))
            .collect(),
        pages_read: tally.pages_fetched,
        pages_failed: tally.pages_failed,
        pages_left: tally.pages_left,
        claims: tally.claims,
        error: error.as_deref().map(plain_line),
        skipped: skipped(tally, usize::MAX),
    }
}

/// A passage between those before and after it, with the quoted spans.
#[derive(Clone, Debug, Serialize)]
pub struct PassageInContext {
    pub fragment_id: String,
    pub url: String,
    pub title: String,
    pub heading: String,
    /// Number of the passage in its document, from 1.
    pub passage: u32,
    /// Text before the passage; empty where the document begins with it, or was read anew and no longer has it.
    pub before: String,
    /// The passage in pieces; those that are quoted are marked.
    pub pieces: Vec<Piece>,
    pub after: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Piece {
    pub text: String,
    pub is_quoted: bool,
}

/// A passage that the task's report cites, in its context. `quote`: mark this; else every quote of the passage.
/// `None`: no claim of the task stands on it.
///
/// # Errors
/// The store does not answer.
pub async fn passage(
    runtime: &Runtime,
    task: &Task,
    fragment_id: &str,
    quote: Option<&str>,
) -> Result<Option<PassageInContext>, StoreError> {
    let (claims, _) = claims_of(runtime, task).await?;
    let edges = claims.iter().flat_map(|view| view.edges.iter().map(move |edge| (view, edge)));
    let of_it: Vec<(&ClaimView, &EdgeView)> =
        edges.filter(|(_, edge)| edge.fragment.id.as_str() == fragment_id).collect();
    let Some((view, edge)) = of_it.first() else { return Ok(None) };
    let quotes: Vec<String> = match quote {
        Some(quote) => vec![plain(quote)],
        None => of_it.iter().map(|(view, edge)| plain(&quote_of(view, edge))).collect(),
    };
    let shown = quote.map_or_else(|| quote_of(view, edge), str::to_owned);
    let heading = edge.fragment.headings.of_quote(&edge.fragment.text, &shown, &view.claim.context);
    let fragments = runtime.store().run(FragmentsOf(edge.page.key())).await?;
    let at = fragments.iter().position(|fragment| fragment.id == edge.fragment.id);
    let text = |at: Option<usize>| at.and_then(|at| fragments.get(at)).map(|one| plain(&one.text)).unwrap_or_default();
    Ok(Some(PassageInContext {
        fragment_id: fragment_id.to_owned(),
        url: edge.page.url.clone(),
        title: plain_line(&edge.page.title),
        heading: plain(heading),
        passage: edge.fragment.position + 1,
        before: text(at.and_then(|at| at.checked_sub(1))),
        pieces: pieces(&plain(&edge.fragment.text), &quotes),
        after: text(at.map(|at| at + 1)),
    }))
}

fn quote_of(view: &ClaimView, edge: &EdgeView) -> String {
    if edge.fragment.id == view.claim.fragment_id {
        return view.claim.quote.clone();
    }
    closest_sentence(&view.claim.text, &edge.fragment.text).to_owned()
}

/// The passage cut at the ends of its quotes.
fn pieces(text: &str, quotes: &[String]) -> Vec<Piece> {
    let mut spans: Vec<(usize, usize)> = Vec::new();
    for quote in quotes {
        if let Some(found) = find_quote(text, quote) {
            let start = found.as_ptr().addr() - text.as_ptr().addr();
            spans.push((start, start + found.len()));
        }
    }
    spans.sort_unstable();
    let mut pieces: Vec<Piece> = Vec::new();
    let mut at = 0;
    for (start, end) in spans {
        let start = start.max(at);
        if end <= start {
            continue;
        }
        if start > at {
            pieces.push(Piece { text: text[at..start].to_owned(), is_quoted: false });
        }
        pieces.push(Piece { text: text[start..end].to_owned(), is_quoted: true });
        at = end;
    }
    if at < text.len() {
        pieces.push(Piece { text: text[at..].to_owned(), is_quoted: false });
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_cut_out_and_never_overlap() {
        let text = "Bears sleep. They eat\nfish. Then they wake.";
        let quotes = ["They eat fish.".to_owned(), "eat fish. Then".to_owned(), "not there".to_owned()];
        let found = pieces(text, &quotes);
        let shown: Vec<(&str, bool)> = found.iter().map(|one| (one.text.as_str(), one.is_quoted)).collect();
        let expected = [("Bears sleep. ", false), ("They eat\nfish.", true), (" Then", true), (" they wake.", false)];
        assert_eq!(shown, expected);
        assert_eq!(pieces(text, &[]), [Piece { text: text.to_owned(), is_quoted: false }]);
    }
}
