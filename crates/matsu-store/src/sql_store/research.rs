//! The store ports of research: evidence, the auth queue, feedback, calibration.

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

use super::SqlStore;
use crate::transitions::auth_queue::{AuthItemsOf, ExpireAuth, ReadAuthItems};
use crate::transitions::calibration::{
    AddEvaluation, CountSamples, ReadCalibration, ReadEvaluations, ReadRollbacks, ReadSamples, ReadVersions,
};
use crate::transitions::cleanup::{ClearTask, Orphans};
use crate::transitions::engines::{ReadBreaker, SetBreaker, TakeDaily};
use crate::transitions::evidence_read::{
    ClaimsOfSearch, FragmentsOf, PageByUrl, PagesOf, PassagesOf, ReadMaterials, ReadSearches, ReadTotals, ReportJobs,
};
use crate::transitions::feedback::{ClearRules, ReadFeedback, ReadRules};
use crate::transitions::record::Record;

#[async_trait]
impl EvidenceStore for SqlStore {
    async fn record(&self, lease: &Lease, evidence: NewEvidence, now: Timestamp) -> Result<Recorded, StoreError> {
        self.write(Record { lease: lease.clone(), evidence, now }).await
    }

    async fn page_by_url(&self, reader: &Principal, url: &str) -> Result<Option<SourcePage>, StoreError> {
        self.read(PageByUrl { reader: reader.clone(), url: url.to_owned() }).await
    }

    async fn fragments_of(&self, page: &PageKey) -> Result<Vec<Fragment>, StoreError> {
        self.read(FragmentsOf(page.clone())).await
    }

    async fn passages_of(&self, task: &TaskId, rows_max: u32) -> Result<Vec<PassageRow>, StoreError> {
        self.read(PassagesOf { task_id: task.clone(), rows_max }).await
    }

    async fn pages_of(&self, task: &TaskId, rows_max: u32) -> Result<Vec<SourcePage>, StoreError> {
        self.read(PagesOf { task_id: task.clone(), rows_max }).await
    }

    async fn report_jobs(&self, task: &TaskId, rows_max: u32) -> Result<Vec<Job>, StoreError> {
        self.read(ReportJobs { task_id: task.clone(), rows_max }).await
    }

    async fn claims_of_search(&self, search: &JobId) -> Result<Vec<ClaimRow>, StoreError> {
        self.read(ClaimsOfSearch(search.clone())).await
    }

    async fn searches(&self, task: &TaskId, wish: SearchWish) -> Result<SearchList, StoreError> {
        self.read(ReadSearches { task_id: task.clone(), wish }).await
    }

    async fn evidence_totals(&self, task: &TaskId) -> Result<EvidenceTotals, StoreError> {
        self.read(ReadTotals(task.clone())).await
    }

    async fn materials(&self, task: &TaskId, wish: MaterialsWish) -> Result<Materials, StoreError> {
        self.read(ReadMaterials { task_id: task.clone(), wish }).await
    }

    async fn clear_task(&self, task: &TaskId, now: Timestamp) -> Result<Cleared, StoreError> {
        self.write(ClearTask { task_id: task.clone(), now }).await
    }

    async fn orphans(&self, removal: Removal) -> Result<Cleared, StoreError> {
        self.write(Orphans(removal)).await
    }

    async fn breaker(&self, engine: &str) -> Result<Breaker, StoreError> {
        self.read(ReadBreaker(engine.to_owned())).await
    }

    async fn set_breaker(&self, engine: &str, breaker: &Breaker) -> Result<(), StoreError> {
        self.write(SetBreaker { engine: engine.to_owned(), breaker: breaker.clone() }).await
    }

    async fn take_daily(&self, key: &str, uses_max: u32, now: Timestamp) -> Result<bool, StoreError> {
        self.write(TakeDaily { key: key.to_owned(), uses_max, now }).await
    }
}

#[async_trait]
impl AuthQueueStore for SqlStore {
    async fn auth_items(&self, filter: &AuthFilter) -> Result<Vec<AuthItem>, StoreError> {
        self.read(ReadAuthItems(filter.clone())).await
    }

    async fn resolve_auth(&self, request: ResolveAuth) -> Result<ResolvedAuth, StoreError> {
        self.write(request).await
    }

    async fn expire_auth(&self, now: Timestamp) -> Result<u64, StoreError> {
        self.write(ExpireAuth(now)).await
    }

    async fn auth_items_of(&self, search: &JobId) -> Result<Vec<AuthItem>, StoreError> {
        self.read(AuthItemsOf(search.clone())).await
    }
}

#[async_trait]
impl FeedbackStore for SqlStore {
    async fn rules(&self, owner: &Principal) -> Result<Vec<DomainRule>, StoreError> {
        self.read(ReadRules(owner.clone())).await
    }

    async fn add_rule(&self, request: NewRule) -> Result<DomainRule, StoreError> {
        self.write(request).await
    }

    async fn clear_rules(
        &self,
        owner: &Principal,
        pattern: &DomainPattern,
        reason: &str,
        now: Timestamp,
    ) -> Result<Vec<RuleId>, StoreError> {
        let (owner, pattern, reason) = (owner.clone(), pattern.clone(), reason.to_owned());
        self.write(ClearRules { owner, pattern, reason, now }).await
    }

    async fn set_adoption(&self, request: SetAdoption) -> Result<(), StoreError> {
        self.write(request).await
    }

    async fn correct_edge(&self, request: CorrectEdge) -> Result<CorrectedEdge, StoreError> {
        self.write(request).await
    }

    async fn feedback_log(&self, owner: &Principal, rows_max: u32) -> Result<Vec<FeedbackEntry>, StoreError> {
        self.read(ReadFeedback { owner: owner.clone(), rows_max }).await
    }
}

#[async_trait]
impl CalibrationStore for SqlStore {
    async fn calibration(&self, source: &str) -> Result<Option<CalibrationVersion>, StoreError> {
        self.read(ReadCalibration(source.to_owned())).await
    }

    async fn calibration_versions(&self, source: Option<&str>) -> Result<Vec<CalibrationVersion>, StoreError> {
        self.read(ReadVersions(source.map(str::to_owned))).await
    }

    async fn add_calibration(&self, version: NewCalibration) -> Result<CalibrationVersion, StoreError> {
        self.write(version).await
    }

    async fn roll_back(&self, request: RollBack) -> Result<RolledBack, StoreError> {
        self.write(request).await
    }

    async fn samples(&self, source: &str, rows_max: u32) -> Result<Vec<CalibrationSample>, StoreError> {
        self.read(ReadSamples { source: source.to_owned(), rows_max }).await
    }

    async fn sample_count(&self, source: &str) -> Result<usize, StoreError> {
        self.read(CountSamples(source.to_owned())).await
    }

    async fn add_evaluation(&self, evaluation: Evaluation) -> Result<(), StoreError> {
        self.write(AddEvaluation(evaluation)).await
    }

    async fn evaluations(&self, filter: &EvaluationFilter) -> Result<Vec<Evaluation>, StoreError> {
        self.read(ReadEvaluations(filter.clone())).await
    }

    async fn rollbacks(&self, source: Option<&str>) -> Result<Vec<RolledBack>, StoreError> {
        self.read(ReadRollbacks(source.map(str::to_owned))).await
    }
}
