//! Reading the evidence graph: pages by address, passages, searches, totals, materials.

use std::collections::HashMap;

use matsu_core::id::{ClaimId, FragmentId, PageId};
use matsu_core::job::{Job, JobState};
use matsu_core::ports::store::{
    ClaimRow, ClaimView, ClaimsOfSearch, EdgeView, EvidenceTotals, FragmentsOf, Materials, Only, PageByUrl, PagesOf,
    PassageRow, PassagesOf, ReadEvidenceTotals, ReadMaterials, ReadSearches, ReportJobs, SearchList, SearchRow,
    StoreError,
};
use matsu_core::principal::Principal;
use matsu_core::research::evidence::{Fragment, Relation, SourcePage};
use matsu_core::research::headings::Headings;
use matsu_core::research::search::SearchStatus;

use super::evidence_rows::{self, claim_columns, edge_columns, fragment_columns, json, not_cancelled, page_columns};
use crate::sql::{Sql, Transition, Tx, params};
use crate::transitions::rows::{self, job_columns};
use crate::transitions::unfinished;

/// The owner's copy first: it may have more than what other users see.
const PAGE_BY_URL: Sql = Sql::both(concat!(
    "SELECT ",
    page_columns!(),
    " FROM pages p WHERE p.url = $1 AND p.owner IN ('', $2) ORDER BY p.owner DESC LIMIT 1"
));
const FRAGMENTS_OF: Sql = Sql::both(concat!(
    "SELECT ",
    fragment_columns!(),
    " FROM fragments f JOIN pages p ON p.id = f.page_id AND p.content_hash = f.content_hash \
     WHERE p.url = $1 AND p.owner = $2 ORDER BY f.position"
));
const PASSAGES: Sql = Sql::both(concat!(
    "SELECT f.id, f.page_id, p.domain, f.text, f.heading, f.sketch FROM task_pages t JOIN pages p ON p.id = t.page_id \
     JOIN fragments f ON f.page_id = p.id AND f.content_hash = p.content_hash WHERE t.task_id = $1 AND ",
    not_cancelled!("t.job_id"),
    " ORDER BY f.id LIMIT $2"
));
const PAGES: Sql = Sql::both(concat!(
    "SELECT ",
    page_columns!(),
    " FROM task_pages t JOIN pages p ON p.id = t.page_id WHERE t.task_id = $1 AND ",
    not_cancelled!("t.job_id"),
    " ORDER BY t.at, p.id LIMIT $2"
));
const REPORT_JOBS: Sql = Sql::both(concat!(
    "SELECT ",
    job_columns!(),
    " FROM jobs WHERE task_id = $1 AND kind = 'report' ORDER BY seq DESC LIMIT $2"
));
const CLAIMS_OF_SEARCH: Sql = Sql::both(concat!(
    "SELECT ",
    claim_columns!(),
    ", p.domain FROM claims c JOIN fragments f ON f.id = c.fragment_id JOIN pages p ON p.id = f.page_id \
     WHERE c.job_id = $1 ORDER BY c.seq"
));
const SEARCH_COUNTS: Sql = Sql::both(
    "SELECT j.state, s.ended_as, count(*) FROM jobs j LEFT JOIN searches s ON s.job_id = j.id \
     WHERE j.task_id = $1 AND j.kind = 'search_queue' GROUP BY j.state, s.ended_as",
);
const SEARCHES: Sql = Sql::both(concat!(
    "SELECT ",
    job_columns!(),
    ", (SELECT tally_json FROM searches WHERE searches.job_id = jobs.id) FROM jobs \
     WHERE task_id = $1 AND kind = 'search_queue' AND (queued_at >= $2 OR started_at >= $2 OR finished_at >= $2 \
     OR EXISTS (SELECT 1 FROM auth_blocked b WHERE b.job_id = jobs.id AND b.at >= $2)) \
     ORDER BY CASE WHEN ",
    unfinished!(),
    " THEN 0 ELSE 1 END, CASE WHEN state = 'queued' THEN 1 ELSE 0 END, \
     CASE WHEN ",
    unfinished!(),
    " THEN priority ELSE 0 END, CASE WHEN ",
    unfinished!(),
    " THEN queued_at ELSE -finished_at END, seq LIMIT $3"
));
const VERIFYING: Sql = Sql::both(concat!(
    "SELECT state, count(*) FROM jobs WHERE task_id = $1 AND kind = 'verify' AND ",
    unfinished!(),
    " GROUP BY state"
));
const REPORTING: Sql =
    Sql::both(concat!("SELECT count(*) FROM jobs WHERE task_id = $1 AND kind = 'report' AND ", unfinished!()));
const UNVERIFIED: Sql = Sql::both(
    "SELECT state, count(*), max(error_message) FROM jobs WHERE task_id = $1 AND kind = 'verify' \
     AND state IN ('failed', 'cancelled') GROUP BY state",
);
const PAGE_TOTALS: Sql = Sql::both(concat!(
    "SELECT count(*), CAST(coalesce(sum(p.is_primary), 0) AS BIGINT) FROM task_pages t JOIN pages p \
     ON p.id = t.page_id WHERE t.task_id = $1 AND ",
    not_cancelled!("t.job_id")
));
const FRAGMENT_TOTAL: Sql = Sql::both(concat!(
    "SELECT count(*) FROM task_pages t JOIN pages p ON p.id = t.page_id \
     JOIN fragments f ON f.page_id = p.id AND f.content_hash = p.content_hash WHERE t.task_id = $1 AND ",
    not_cancelled!("t.job_id")
));
const CLAIM_TOTALS: Sql = Sql::both(concat!(
    "SELECT count(*), CAST(coalesce(sum(CASE WHEN c.n_supports > 0 THEN 1 ELSE 0 END), 0) AS BIGINT), \
     CAST(coalesce(sum(CASE WHEN c.n_refutes > 0 THEN 1 ELSE 0 END), 0) AS BIGINT) FROM claims c \
     WHERE c.task_id = $1 AND ",
    not_cancelled!("c.job_id")
));
/// What a wish lets through.
macro_rules! wished {
    () => {
        concat!(
            "c.task_id = $1 AND ",
            not_cancelled!("c.job_id"),
            // A claim that nothing was weighed for has no confidence that could be high enough.
            " AND ($2 = 0 OR (c.n_supports + c.n_refutes > 0 AND c.confidence >= $2)) AND ($3 = 'all' OR ($3 = 'contested' AND c.controversy > 0) \
             OR ($3 = 'adopted' AND c.adoption = 'adopted'))"
        )
    };
}
const TOTAL: Sql = Sql::both(concat!("SELECT count(*) FROM claims c WHERE ", wished!()));
/// The place of a claim in the list, as one number that is the cursor, too: relevance from above in the high bits, then
/// confidence from above, then the row's own number.
macro_rules! place {
    () => {
        "(10000 - c.relevance) * 562949953421312 + (1000 - c.confidence) * 549755813888 + c.seq"
    };
}
const CLAIMS: Sql = Sql::both(concat!(
    "SELECT ",
    claim_columns!(),
    ", c.confidence, c.uncertainty, c.controversy, ",
    place!(),
    " FROM claims c WHERE ",
    wished!(),
    " AND ",
    place!(),
    " > $4 ORDER BY c.relevance DESC, c.confidence DESC, c.seq LIMIT $5"
));
const EDGES: Sql = Sql::each(
    concat!(
        "SELECT ",
        edge_columns!(),
        ", ",
        fragment_columns!(),
        ", ",
        page_columns!(),
        " FROM edges e JOIN fragments f ON f.id = e.fragment_id JOIN pages p ON p.id = f.page_id WHERE e.claim_id = $1"
    ),
    concat!(
        "SELECT ",
        edge_columns!(),
        ", ",
        fragment_columns!(),
        ", ",
        page_columns!(),
        " FROM edges e JOIN fragments f ON f.id = e.fragment_id JOIN pages p ON p.id = f.page_id \
         WHERE e.claim_id = ANY($1)"
    ),
);

impl Transition for PageByUrl {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Option<SourcePage>, StoreError> {
        let row = tx.row(&PAGE_BY_URL, params![&self.url, &self.reader]).await?;
        row.map(|row| evidence_rows::page(&mut row.columns())).transpose()
    }
}

impl Transition for FragmentsOf {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Vec<Fragment>, StoreError> {
        let owner = self.0.owner.as_ref().map_or("", Principal::as_str);
        let rows = tx.rows(&FRAGMENTS_OF, params![&self.0.url, owner]).await?;
        rows.iter().map(|row| evidence_rows::fragment(&mut row.columns())).collect()
    }
}

impl Transition for PassagesOf {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Vec<PassageRow>, StoreError> {
        let rows = tx.rows(&PASSAGES, params![&self.task_id, self.rows_max]).await?;
        rows.iter()
            .map(|row| {
                let mut c = row.columns();
                Ok(PassageRow {
                    fragment_id: FragmentId::from_text(c.text()?),
                    page_id: PageId::from_text(c.text()?),
                    domain: c.text()?,
                    text: c.text()?,
                    headings: Headings::from_stored(&c.text()?),
                    sketch: c.int()?.cast_unsigned(),
                })
            })
            .collect()
    }
}

impl Transition for PagesOf {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Vec<SourcePage>, StoreError> {
        let rows = tx.rows(&PAGES, params![&self.task_id, self.rows_max]).await?;
        rows.iter().map(|row| evidence_rows::page(&mut row.columns())).collect()
    }
}

impl Transition for ReportJobs {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Vec<Job>, StoreError> {
        let rows = tx.rows(&REPORT_JOBS, params![&self.task_id, self.rows_max]).await?;
        rows.iter().map(rows::job).collect()
    }
}

impl Transition for ClaimsOfSearch {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Vec<ClaimRow>, StoreError> {
        let rows = tx.rows(&CLAIMS_OF_SEARCH, params![&self.0]).await?;
        rows.iter()
            .map(|row| {
                let mut c = row.columns();
                Ok(ClaimRow { claim: evidence_rows::claim(&mut c)?, domain: c.text()? })
            })
            .collect()
    }
}

impl Transition for ReadSearches {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<SearchList, StoreError> {
        let mut list = SearchList::default();
        for row in tx.rows(&SEARCH_COUNTS, params![&self.task_id]).await? {
            let mut c = row.columns();
            let (state, ended_as) = (c.word(JobState::parse)?, c.opt_word(SearchStatus::parse)?);
            list.counts.push((SearchStatus::of(state, ended_as), c.int()?));
        }
        for row in tx.rows(&VERIFYING, params![&self.task_id]).await? {
            let mut c = row.columns();
            match c.word(JobState::parse)? {
                JobState::Queued => list.verifying.0 += c.int()?,
                _ => list.verifying.1 += c.int()?,
            }
        }
        list.reporting = tx.row(&REPORTING, params![&self.task_id]).await?.map_or(Ok(0), |row| row.only_int())?;
        for row in tx.rows(&UNVERIFIED, params![&self.task_id]).await? {
            let mut c = row.columns();
            let (state, count, error) = (c.word(JobState::parse)?, c.int()?, c.opt_text()?);
            match state {
                JobState::Cancelled => list.unverified.cancelled = count,
                _ => (list.unverified.failed, list.unverified.error) = (count, error),
            }
        }
        let since = self.wish.changed_since.unwrap_or_default();
        for row in tx.rows(&SEARCHES, params![&self.task_id, since, self.wish.rows_max]).await? {
            let job = rows::job(&row)?;
            let tally = row.columns().skip(JOB_COLUMNS).opt_text()?.or_else(|| job.output_json.clone());
            let tally = tally.and_then(|text| json(&text).ok());
            list.rows.push(SearchRow { job, tally });
        }
        Ok(list)
    }
}

/// How many columns `job_columns!()` has.
const JOB_COLUMNS: usize = 22;

impl Transition for ReadEvidenceTotals {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<EvidenceTotals, StoreError> {
        let mut totals = EvidenceTotals::default();
        if let Some(row) = tx.row(&PAGE_TOTALS, params![&self.0]).await? {
            let mut c = row.columns();
            (totals.pages, totals.primary_pages) = (c.int()?, c.int()?);
        }
        if let Some(row) = tx.row(&FRAGMENT_TOTAL, params![&self.0]).await? {
            totals.fragments = row.only_int()?;
        }
        if let Some(row) = tx.row(&CLAIM_TOTALS, params![&self.0]).await? {
            let mut c = row.columns();
            (totals.claims, totals.verified_claims, totals.refuted_claims) = (c.int()?, c.int()?, c.int()?);
        }
        Ok(totals)
    }
}

impl Transition for ReadMaterials {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Materials, StoreError> {
        let wish = &self.wish;
        let only = match wish.only {
            Only::All => "all",
            Only::Contested => "contested",
            Only::Adopted => "adopted",
        };
        let filter = params![&self.task_id, wish.confidence_min.unwrap_or(0), only];
        let total = tx.row(&TOTAL, filter).await?.map_or(Ok(0), |row| row.only_int())?;
        // One more than wanted shows whether there is another page.
        let page = params![wish.after.unwrap_or(-1), i64::from(wish.rows_max) + 1];
        let rows = tx.rows(&CLAIMS, &[filter, page].concat()).await?;
        let wanted = wish.rows_max as usize;
        let mut next = None;
        let mut claims = Vec::with_capacity(rows.len().min(wanted));
        for row in rows.iter().take(wanted) {
            let mut c = row.columns();
            let claim = evidence_rows::claim(&mut c)?;
            let (confidence, uncertainty, controversy) = (c.count()?, c.count()?, c.count()?);
            let cursor = c.int()?;
            next = Some(cursor);
            claims.push(ClaimView { claim, confidence, uncertainty, controversy, edges: Vec::new(), cursor });
        }
        add_edges(tx, &mut claims).await?;
        Ok(Materials { next: next.filter(|_| rows.len() > wanted), claims, total })
    }
}

async fn add_edges(tx: &mut Tx<'_>, claims: &mut [ClaimView]) -> Result<(), StoreError> {
    let ids: Vec<String> = claims.iter().map(|view| view.claim.id.to_string()).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let mut by_claim: HashMap<ClaimId, Vec<EdgeView>> = HashMap::new();
    for row in tx.rows_of(&EDGES, &ids, params![]).await? {
        let mut c = row.columns();
        let edge = evidence_rows::edge(&mut c)?;
        let view = EdgeView { fragment: evidence_rows::fragment(&mut c)?, page: evidence_rows::page(&mut c)?, edge };
        by_claim.entry(view.edge.claim_id.clone()).or_default().push(view);
    }
    for view in claims {
        view.edges = by_claim.remove(&view.claim.id).unwrap_or_default();
        view.edges.sort_by(|left, right| {
            let rank =
                |view: &EdgeView| (view.edge.relation != Relation::Origin, view.edge.relation == Relation::Neutral);
            let by_weight = rank(left).cmp(&rank(right)).then(right.edge.probability.total_cmp(&left.edge.probability));
            by_weight.then_with(|| left.edge.id.as_str().cmp(right.edge.id.as_str()))
        });
    }
    Ok(())
}
