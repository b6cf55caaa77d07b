//! The evidence graph: what searches write under their lease, and what readers see of it.
//!
//! A page that has an owner is visible to that owner only: every read names its reader. What a cancelled job wrote is
//! left out of every read.

use crate::clock::Timestamp;
use crate::id::{AuthItemId, ClaimId, FragmentId, JobId, PageId, TaskId};
use crate::job::{Job, Lease, Priority};
use crate::principal::Principal;
use crate::research::auth::AuthType;
use crate::research::breaker::Breaker;
use crate::research::evidence::{Claim, Edge, Extraction, Fragment, PageKey, ScorePart, SourcePage};
use crate::research::headings::Headings;
use crate::research::search::{SearchStatus, SearchTally};
use crate::research::stance::Stance;

use super::{Reservation, request};

/// Writes what one step of a search found, with the checkpoint behind it, all or nothing and under the fence. So
/// what a dead attempt left behind is exactly what its checkpoint names, and the next attempt goes on from it.
#[derive(Clone, Debug)]
pub struct RecordEvidence {
    pub lease: Lease,
    pub evidence: NewEvidence,
    pub now: Timestamp,
}
request!(RecordEvidence => Recorded);

/// The page that this reader may use for an address: the reader's own first, then one without an owner.
#[derive(Clone, Debug)]
pub struct PageByUrl {
    pub reader: Principal,
    pub url: String,
}
request!(PageByUrl => Option<SourcePage>);

/// The passages of a page as it was last read, in order.
#[derive(Clone, Debug)]
pub struct FragmentsOf(pub PageKey);
request!(FragmentsOf => Vec<Fragment>);

/// Passages of all pages the task has reached, with the domain of their page, in id order; at most `rows_max`.
#[derive(Clone, Debug)]
pub struct PassagesOf {
    pub task_id: TaskId,
    pub rows_max: u32,
}
request!(PassagesOf => Vec<PassageRow>);

/// Pages the task has reached, in the order in which it did; at most `rows_max`.
#[derive(Clone, Debug)]
pub struct PagesOf {
    pub task_id: TaskId,
    pub rows_max: u32,
}
request!(PagesOf => Vec<SourcePage>);

/// The task's report jobs, newest first; at most `rows_max`.
#[derive(Clone, Debug)]
pub struct ReportJobs {
    pub task_id: TaskId,
    pub rows_max: u32,
}
request!(ReportJobs => Vec<Job>);

/// Claims of one search, oldest first, with the domain each was found on.
#[derive(Clone, Debug)]
pub struct ClaimsOfSearch(pub JobId);
request!(ClaimsOfSearch => Vec<ClaimRow>);

/// Searches of a task and what they came to, as far as the wish goes.
#[derive(Clone, Debug)]
pub struct ReadSearches {
    pub task_id: TaskId,
    pub wish: SearchWish,
}
request!(ReadSearches => SearchList);

/// Sums over the task's evidence.
#[derive(Clone, Debug)]
pub struct ReadEvidenceTotals(pub TaskId);
request!(ReadEvidenceTotals => EvidenceTotals);

/// Claims with their evidence, most confident first.
#[derive(Clone, Debug)]
pub struct ReadMaterials {
    pub task_id: TaskId,
    pub wish: MaterialsWish,
}
request!(ReadMaterials => Materials);

/// Removes the task's claims, their edges, its result lists and checkpoints. Pages and fragments stay.
#[derive(Clone, Debug)]
pub struct ClearTask {
    pub task_id: TaskId,
    pub now: Timestamp,
}
request!(ClearTask => Cleared);

/// What no task reaches: edges without an end, fragments and pages without a reader. Removed unless it is only a
/// look. Idempotent.
#[derive(Clone, Debug)]
pub struct ClearOrphans(pub Removal);
request!(ClearOrphans => Cleared);

#[derive(Clone, Debug)]
pub struct ReadBreaker(pub String);
request!(ReadBreaker => Breaker);

#[derive(Clone, Debug)]
pub struct SetBreaker {
    pub engine: String,
    pub breaker: Breaker,
}
request!(SetBreaker => ());

/// Counts one more use of something that is bounded by day. `false`: the day's share is used up.
#[derive(Clone, Debug)]
pub struct TakeDaily {
    pub key: String,
    pub uses_max: u32,
    pub now: Timestamp,
}
request!(TakeDaily => bool);

/// What one step found. Everything empty but the checkpoint is a plain checkpoint.
#[derive(Clone, Debug, Default)]
pub struct NewEvidence {
    pub hits: Vec<NewHit>,
    pub page: Option<NewPage>,
    /// Pages that were read before and serve this task too.
    pub reused: Vec<PageId>,
    pub claims: Vec<NewClaim>,
    pub edges: Vec<NewEdge>,
    pub auth: Option<NewAuthItem>,
    /// What a reservation really cost.
    pub spent: Vec<(Reservation, i64)>,
    pub tally: Option<SearchTally>,
    pub checkpoint_json: Option<String>,
}

/// One line of a result list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewHit {
    pub engine: String,
    pub rank: u32,
    pub url: String,
    pub title: String,
    pub snippet: String,
}

/// A page that was read, with its passages. One that is known by address and owner is brought up to date and keeps
/// its id; passages that it still has keep theirs.
#[derive(Clone, Debug)]
pub struct NewPage {
    pub page: SourcePage,
    pub fragments: Vec<Fragment>,
}

#[derive(Clone, Debug)]
pub struct NewClaim {
    pub id: ClaimId,
    pub text: String,
    pub quote: String,
    /// By its hash on the page of the same step, or on a page read before.
    pub fragment_id: FragmentId,
    /// Other fragments that state the same.
    pub also: Vec<FragmentId>,
    /// What is needed to understand it.
    pub context: String,
    /// How likely it answers the question, in ten-thousandths.
    pub relevance: u32,
    pub parts: Vec<ScorePart>,
    pub extraction: Extraction,
}

#[derive(Clone, Debug)]
pub struct NewEdge {
    pub claim_id: ClaimId,
    pub fragment_id: FragmentId,
    pub stance: Stance,
    pub probability: f64,
    pub relation: crate::research::evidence::Relation,
    /// Whose judgement it is.
    pub source: String,
    pub calibration_version: u32,
}

/// A page that needs a login. An item that exists for this owner and address is joined.
#[derive(Clone, Debug)]
pub struct NewAuthItem {
    pub url: String,
    pub domain: String,
    pub auth_type: AuthType,
    pub priority: Priority,
    pub expires_at: Timestamp,
}

/// What became of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    pub page_id: Option<PageId>,
    /// Claims that were new in the task.
    pub claims: u32,
    pub edges: u32,
    pub auth_item: Option<AuthItemId>,
}

#[derive(Clone, Debug)]
pub struct PassageRow {
    pub fragment_id: FragmentId,
    pub page_id: PageId,
    pub domain: String,
    pub text: String,
    pub headings: Headings,
    pub sketch: u64,
}

#[derive(Clone, Debug)]
pub struct ClaimRow {
    pub claim: Claim,
    pub domain: String,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct SearchWish {
    /// Only those that were queued, started, parked or ended at or after this.
    pub changed_since: Option<Timestamp>,
    pub rows_max: u32,
}

#[derive(Clone, Debug)]
pub struct SearchRow {
    pub job: Job,
    pub tally: Option<SearchTally>,
}

#[derive(Clone, Debug, Default)]
pub struct SearchList {
    /// Unfinished ones first, in the order they start; then finished ones, newest first.
    pub rows: Vec<SearchRow>,
    /// Over all searches of the task, listed or not.
    pub counts: Vec<(SearchStatus, i64)>,
    /// Verify jobs that are not finished, as queued and running.
    pub verifying: (i64, i64),
    /// Report jobs that are not finished.
    pub reporting: i64,
    pub unverified: Unverified,
}

/// Verify jobs that ended without a judgement, so that claims are unverified although they were meant to be weighed.
#[derive(Clone, Debug, Default)]
pub struct Unverified {
    pub failed: i64,
    /// Why one of them failed.
    pub error: Option<String>,
    /// Left out because the task was stopped.
    pub cancelled: i64,
}

impl SearchList {
    #[must_use]
    pub fn count(&self, status: SearchStatus) -> i64 {
        self.counts.iter().filter(|(counted, _)| *counted == status).map(|(_, count)| count).sum()
    }

    #[must_use]
    pub fn total(&self) -> i64 {
        self.counts.iter().map(|(_, count)| count).sum()
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EvidenceTotals {
    pub pages: i64,
    pub primary_pages: i64,
    pub fragments: i64,
    pub claims: i64,
    pub verified_claims: i64,
    pub refuted_claims: i64,
}

impl EvidenceTotals {
    /// The share of pages that are primary sources; 0 of none.
    #[must_use]
    pub fn primary_ratio(&self) -> f64 {
        if self.pages == 0 {
            return 0.0;
        }
        #[expect(clippy::cast_precision_loss, reason = "counts of pages are small")]
        let ratio = self.primary_pages as f64 / self.pages as f64;
        crate::research::confidence::round3(ratio)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Only {
    #[default]
    All,
    /// Controversy above zero.
    Contested,
    /// Not rejected by a person.
    Adopted,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct MaterialsWish {
    pub only: Only,
    /// In thousandths.
    pub confidence_min: Option<u32>,
    pub after: Option<i64>,
    pub rows_max: u32,
}

/// One claim as readers see it.
#[derive(Clone, Debug)]
pub struct ClaimView {
    pub claim: Claim,
    /// In thousandths, as stored with the claim whenever its edges change.
    pub confidence: u32,
    pub uncertainty: u32,
    pub controversy: u32,
    /// The origin first, then what others say, strongest first.
    pub edges: Vec<EdgeView>,
    /// Where the list goes on behind it.
    pub cursor: i64,
}

#[derive(Clone, Debug)]
pub struct EdgeView {
    pub edge: Edge,
    pub fragment: Fragment,
    pub page: SourcePage,
}

#[derive(Clone, Debug, Default)]
pub struct Materials {
    pub claims: Vec<ClaimView>,
    pub next: Option<i64>,
    /// How many claims the filter lets through in all.
    pub total: i64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Cleared {
    pub claims: u64,
    pub edges: u64,
    pub hits: u64,
    pub fragments: u64,
    pub pages: u64,
    /// Of orphans: which they are, at most [`ORPHANS_LISTED_MAX`](crate::limits::ORPHANS_LISTED_MAX) of each kind.
    #[serde(skip)]
    pub listed: Orphaned,
}

/// Evidence that no task reaches.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Orphaned {
    /// Addresses.
    pub pages: Vec<String>,
    /// Ids.
    pub fragments: Vec<String>,
    /// Ids.
    pub edges: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// Only count.
    DryRun,
    Remove,
}
