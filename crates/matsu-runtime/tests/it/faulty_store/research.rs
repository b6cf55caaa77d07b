//! The ports of research, failing on command like all others.

use async_trait::async_trait;
use matsu_core::clock::Timestamp;
use matsu_core::id::{JobId, RuleId, TaskId};
use matsu_core::job::{Job, Lease};
use matsu_core::ports::store::{
    AuthFilter, AuthQueueStore, CalibrationStore, ClaimRow, Cleared, CorrectEdge, CorrectedEdge, EvaluationFilter,
    EvidenceStore, EvidenceTotals, FeedbackEntry, FeedbackStore, Materials, MaterialsWish, NewCalibration, NewEvidence,
    NewRule, PassageRow, Recorded, Removal, ResolveAuth, ResolvedAuth, RollBack, RolledBack, SearchList, SearchWish,
    SetAdoption, StoreError,
};
use matsu_core::principal::Principal;
use matsu_core::research::auth::AuthItem;
use matsu_core::research::breaker::Breaker;
use matsu_core::research::calibration::{CalibrationSample, CalibrationVersion, Evaluation};
use matsu_core::research::domain_rule::{DomainPattern, DomainRule};
use matsu_core::research::evidence::{Fragment, PageKey, SourcePage};

use super::FaultyStore;

#[async_trait]
impl EvidenceStore for FaultyStore {
    async fn record(&self, lease: &Lease, evidence: NewEvidence, now: Timestamp) -> Result<Recorded, StoreError> {
        self.pass("record", self.inner.record(lease, evidence, now)).await
    }

    async fn page_by_url(&self, reader: &Principal, url: &str) -> Result<Option<SourcePage>, StoreError> {
        self.pass("page_by_url", self.inner.page_by_url(reader, url)).await
    }

    async fn fragments_of(&self, page: &PageKey) -> Result<Vec<Fragment>, StoreError> {
        self.pass("fragments_of", self.inner.fragments_of(page)).await
    }

    async fn passages_of(&self, task: &TaskId, rows_max: u32) -> Result<Vec<PassageRow>, StoreError> {
        self.pass("passages_of", self.inner.passages_of(task, rows_max)).await
    }

    async fn pages_of(&self, task: &TaskId, rows_max: u32) -> Result<Vec<SourcePage>, StoreError> {
        self.pass("pages_of", self.inner.pages_of(task, rows_max)).await
    }

    async fn report_jobs(&self, task: &TaskId, rows_max: u32) -> Result<Vec<Job>, StoreError> {
        self.pass("report_jobs", self.inner.report_jobs(task, rows_max)).await
    }

    async fn claims_of_search(&self, search: &JobId) -> Result<Vec<ClaimRow>, StoreError> {
        self.pass("claims_of_search", self.inner.claims_of_search(search)).await
    }

    async fn searches(&self, task: &TaskId, wish: SearchWish) -> Result<SearchList, StoreError> {
        self.pass("searches", self.inner.searches(task, wish)).await
    }

    async fn evidence_totals(&self, task: &TaskId) -> Result<EvidenceTotals, StoreError> {
        self.pass("evidence_totals", self.inner.evidence_totals(task)).await
    }

    async fn materials(&self, task: &TaskId, wish: MaterialsWish) -> Result<Materials, StoreError> {
        self.pass("materials", self.inner.materials(task, wish)).await
    }

    async fn clear_task(&self, task: &TaskId, now: Timestamp) -> Result<Cleared, StoreError> {
        self.pass("clear_task", self.inner.clear_task(task, now)).await
    }

    async fn orphans(&self, removal: Removal) -> Result<Cleared, StoreError> {
        self.pass("orphans", self.inner.orphans(removal)).await
    }

    async fn breaker(&self, engine: &str) -> Result<Breaker, StoreError> {
        self.pass("breaker", self.inner.breaker(engine)).await
    }

    async fn set_breaker(&self, engine: &str, breaker: &Breaker) -> Result<(), StoreError> {
        self.pass("set_breaker", self.inner.set_breaker(engine, breaker)).await
    }

    async fn take_daily(&self, key: &str, uses_max: u32, now: Timestamp) -> Result<bool, StoreError> {
        self.pass("take_daily", self.inner.take_daily(key, uses_max, now)).await
    }
}

#[async_trait]
impl AuthQueueStore for FaultyStore {
    async fn auth_items(&self, filter: &AuthFilter) -> Result<Vec<AuthItem>, StoreError> {
        self.pass("auth_items", self.inner.auth_items(filter)).await
    }

    async fn resolve_auth(&self, request: ResolveAuth) -> Result<ResolvedAuth, StoreError> {
        self.pass("resolve_auth", self.inner.resolve_auth(request)).await
    }

    async fn expire_auth(&self, now: Timestamp) -> Result<u64, StoreError> {
        self.pass("expire_auth", self.inner.expire_auth(now)).await
    }

    async fn auth_items_of(&self, search: &JobId) -> Result<Vec<AuthItem>, StoreError> {
        self.pass("auth_items_of", self.inner.auth_items_of(search)).await
    }
}

#[async_trait]
impl FeedbackStore for FaultyStore {
    async fn rules(&self, owner: &Principal) -> Result<Vec<DomainRule>, StoreError> {
        self.pass("rules", self.inner.rules(owner)).await
    }

    async fn add_rule(&self, request: NewRule) -> Result<DomainRule, StoreError> {
        self.pass("add_rule", self.inner.add_rule(request)).await
    }

    async fn clear_rules(
        &self,
        owner: &Principal,
        pattern: &DomainPattern,
        reason: &str,
        now: Timestamp,
    ) -> Result<Vec<RuleId>, StoreError> {
        self.pass("clear_rules", self.inner.clear_rules(owner, pattern, reason, now)).await
    }

    async fn set_adoption(&self, request: SetAdoption) -> Result<(), StoreError> {
        self.pass("set_adoption", self.inner.set_adoption(request)).await
    }

    async fn correct_edge(&self, request: CorrectEdge) -> Result<CorrectedEdge, StoreError> {
        self.pass("correct_edge", self.inner.correct_edge(request)).await
    }

    async fn feedback_log(&self, owner: &Principal, rows_max: u32) -> Result<Vec<FeedbackEntry>, StoreError> {
        self.pass("feedback_log", self.inner.feedback_log(owner, rows_max)).await
    }
}

#[async_trait]
impl CalibrationStore for FaultyStore {
    async fn calibration(&self, source: &str) -> Result<Option<CalibrationVersion>, StoreError> {
        self.pass("calibration", self.inner.calibration(source)).await
    }

    async fn calibration_versions(&self, source: Option<&str>) -> Result<Vec<CalibrationVersion>, StoreError> {
        self.pass("calibration_versions", self.inner.calibration_versions(source)).await
    }

    async fn add_calibration(&self, version: NewCalibration) -> Result<CalibrationVersion, StoreError> {
        self.pass("add_calibration", self.inner.add_calibration(version)).await
    }

    async fn roll_back(&self, request: RollBack) -> Result<RolledBack, StoreError> {
        self.pass("roll_back", self.inner.roll_back(request)).await
    }

    async fn samples(&self, source: &str, rows_max: u32) -> Result<Vec<CalibrationSample>, StoreError> {
        self.pass("samples", self.inner.samples(source, rows_max)).await
    }

    async fn sample_count(&self, source: &str) -> Result<usize, StoreError> {
        self.pass("sample_count", self.inner.sample_count(source)).await
    }

    async fn add_evaluation(&self, evaluation: Evaluation) -> Result<(), StoreError> {
        self.pass("add_evaluation", self.inner.add_evaluation(evaluation)).await
    }

    async fn evaluations(&self, filter: &EvaluationFilter) -> Result<Vec<Evaluation>, StoreError> {
        self.pass("evaluations", self.inner.evaluations(filter)).await
    }

    async fn rollbacks(&self, source: Option<&str>) -> Result<Vec<RolledBack>, StoreError> {
        self.pass("rollbacks", self.inner.rollbacks(source)).await
    }
}
