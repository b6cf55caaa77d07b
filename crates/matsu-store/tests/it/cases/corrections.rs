//! What people correct: logins, rules, claims, edges, calibrations.

use std::time::Duration;

use matsu_core::id::{AuthItemId, EdgeId, EvaluationId};
use matsu_core::job::{JobEnd, JobState, Priority};
use matsu_core::ports::store::{
    AddEvaluation, AuthFilter, AuthItemsOf, AuthOutcome, AuthTarget, ClearRules, CorrectEdge, EvaluationFilter,
    ExpireAuth, NewAuthItem, NewCalibration, NewEvidence, NewRule, ReadAuthItems, ReadCalibration,
    ReadCalibrationVersions, ReadEvaluations, ReadFeedback, ReadMaterials, ReadRollbacks, ReadRules, ReadSamples,
    RecordEvidence, ResolveAuth, RollBack, SetAdoption, StoreError,
};
use matsu_core::principal::Principal;
use matsu_core::research::auth::{AuthStatus, AuthType};
use matsu_core::research::calibration::{Calibration, CalibrationMethod, Evaluation, bins};
use matsu_core::research::domain_rule::{DomainPattern, RuleDecision, is_blocked};
use matsu_core::research::evidence::{Adoption, Relation};

use super::evidence::{all, edge, found, searching};
use crate::harness::{TestStore, lease};

fn login(t: &TestStore, url: &str) -> NewEvidence {
    let item = NewAuthItem {
        url: url.to_owned(),
        domain: "closed.org".to_owned(),
        auth_type: AuthType::Login,
        priority: Priority::High,
        expires_at: t.now().plus(Duration::from_secs(3_600)),
    };
    NewEvidence { auth: Some(item), ..NewEvidence::default() }
}

fn mine() -> AuthFilter {
    AuthFilter { owner: Principal::local_user(), task_id: None, priority: None, rows_max: 50 }
}

fn resolve(t: &TestStore, target: AuthTarget, outcome: AuthOutcome) -> ResolveAuth {
    ResolveAuth { owner: Principal::local_user(), target, outcome, now: t.now() }
}

pub async fn one_login_holds_up_many_searches(t: TestStore) {
    let (task, first) = searching(&t).await;
    let (_, second) = searching(&t).await;
    let before = t.task(&task).await;
    let raised = t
        .store
        .run(RecordEvidence { lease: lease(&first), evidence: login(&t, "https://closed.org/1"), now: t.now() })
        .await
        .unwrap();
    let joined = t
        .store
        .run(RecordEvidence { lease: lease(&second), evidence: login(&t, "https://closed.org/1"), now: t.now() })
        .await
        .unwrap();
    assert_eq!(raised.auth_item, joined.auth_item, "one item per owner and address");
    let after = t.task(&task).await;
    assert!(after.attention_revision > before.revision, "a needed login is news");
    let items = t.store.run(ReadAuthItems(mine())).await.unwrap();
    assert_eq!((items.len(), items[0].blocked.len()), (1, 2));
    let of_task = AuthFilter { task_id: Some(task), ..mine() };
    assert_eq!(t.store.run(ReadAuthItems(of_task.clone())).await.unwrap().len(), 1);
    let low = AuthFilter { priority: Some(Priority::Low), ..mine() };
    assert_eq!(t.store.run(ReadAuthItems(low.clone())).await.unwrap().len(), 0);
    let other = AuthFilter { owner: Principal::user("other"), ..mine() };
    assert_eq!(t.store.run(ReadAuthItems(other.clone())).await.unwrap().len(), 0);
}

pub async fn a_finished_login_puts_its_searches_back(t: TestStore) {
    let (_, first) = searching(&t).await;
    let (_, second) = searching(&t).await;
    let id = t
        .store
        .run(RecordEvidence { lease: lease(&first), evidence: login(&t, "https://closed.org/1"), now: t.now() })
        .await
        .unwrap()
        .auth_item;
    t.store
        .run(RecordEvidence { lease: lease(&second), evidence: login(&t, "https://closed.org/2"), now: t.now() })
        .await
        .unwrap();
    for job in [&first, &second] {
        assert_eq!(t.finish(&lease(job), JobEnd::AwaitingAuth).await.unwrap(), JobState::AwaitingAuth);
    }
    let item = AuthTarget::Item(id.unwrap());
    let resolved = t.store.run(resolve(&t, item.clone(), AuthOutcome::Opened)).await.unwrap();
    assert_eq!(resolved.requeued, [first.id.clone()], "precisely the blocked one");
    assert_eq!(t.job(&second.id).await.state, JobState::AwaitingAuth);
    assert_eq!(t.store.run(AuthItemsOf(first.id.clone())).await.unwrap()[0].status, AuthStatus::Completed);
    let again = t.store.run(resolve(&t, item, AuthOutcome::Opened)).await;
    assert!(matches!(again, Err(StoreError::NotFound { what: "auth item", .. })));
    let unknown = AuthTarget::Item(AuthItemId::from_text("iq_nope"));
    assert!(t.store.run(resolve(&t, unknown, AuthOutcome::Skipped)).await.is_err());
    let domain = AuthTarget::Domain("closed.org".to_owned());
    let rest = t.store.run(resolve(&t, domain, AuthOutcome::Skipped)).await.unwrap();
    assert_eq!(rest.requeued, [second.id.clone()]);
    assert_eq!(t.store.run(AuthItemsOf(second.id.clone())).await.unwrap()[0].status, AuthStatus::Skipped);
}

pub async fn an_unresolved_login_expires(t: TestStore) {
    let (_, job) = searching(&t).await;
    t.store
        .run(RecordEvidence { lease: lease(&job), evidence: login(&t, "https://closed.org/1"), now: t.now() })
        .await
        .unwrap();
    t.finish(&lease(&job), JobEnd::AwaitingAuth).await.unwrap();
    assert_eq!(t.store.run(ExpireAuth(t.now())).await.unwrap(), 0);
    let later = t.pass(Duration::from_secs(3_600));
    assert_eq!(t.store.run(ExpireAuth(later)).await.unwrap(), 1);
    assert_eq!(t.job(&job.id).await.state, JobState::Queued, "it ends without that page");
    assert_eq!(t.store.run(ReadAuthItems(mine())).await.unwrap().len(), 0);
}

pub async fn a_search_that_parks_after_its_login_was_resolved_is_found(t: TestStore) {
    let (_, job) = searching(&t).await;
    let id = t
        .store
        .run(RecordEvidence { lease: lease(&job), evidence: login(&t, "https://closed.org/1"), now: t.now() })
        .await
        .unwrap()
        .auth_item;
    let target = AuthTarget::Item(id.unwrap());
    let resolved = t.store.run(resolve(&t, target, AuthOutcome::Opened)).await.unwrap();
    assert_eq!(resolved.requeued, [], "it still runs");
    t.finish(&lease(&job), JobEnd::AwaitingAuth).await.unwrap();
    t.store.run(ExpireAuth(t.now())).await.unwrap();
    assert_eq!(t.job(&job.id).await.state, JobState::Queued);
}

pub async fn the_newest_rule_counts_and_each_is_logged(t: TestStore) {
    let owner = Principal::local_user();
    let pattern = DomainPattern::parse("*.example.com").unwrap();
    let rule = |decision| NewRule {
        owner: owner.clone(),
        pattern: pattern.clone(),
        decision,
        reason: "spam".to_owned(),
        now: t.now(),
    };
    let blocked = async || is_blocked(&t.store.run(ReadRules(owner.clone())).await.unwrap(), "a.example.com");
    assert!(!blocked().await);
    t.store.run(rule(RuleDecision::Block)).await.unwrap();
    assert!(blocked().await);
    t.store.run(rule(RuleDecision::Unblock)).await.unwrap();
    assert!(!blocked().await);
    t.store.run(rule(RuleDecision::Block)).await.unwrap();
    assert!(blocked().await);
    assert_eq!(
        t.store
            .run(ClearRules {
                owner: owner.clone(),
                pattern: pattern.clone(),
                reason: "mistake".to_owned(),
                now: t.now()
            })
            .await
            .unwrap()
            .len(),
        3
    );
    assert!(!blocked().await);
    assert!(
        t.store
            .run(ClearRules {
                owner: owner.clone(),
                pattern: pattern.clone(),
                reason: "again".to_owned(),
                now: t.now()
            })
            .await
            .unwrap()
            .is_empty()
    );
    let log = t.store.run(ReadFeedback { owner: owner.clone(), rows_max: 10 }).await.unwrap();
    let actions: Vec<&str> = log.iter().map(|entry| entry.action.as_str()).collect();
    let clear = "domain_clear_override";
    assert_eq!(actions, [clear, clear, "domain_block", "domain_unblock", "domain_block"]);
    assert_eq!(log[1].reason.as_deref(), Some("mistake"));
    assert!(t.store.run(ReadRules(Principal::user("other"))).await.unwrap().is_empty());
}

pub async fn a_rejected_claim_says_so_and_can_be_restored(t: TestStore) {
    let (task, job) = searching(&t).await;
    let (claim_id, _) = found(&t, &job, "https://a.org/1", &["Waiting is cheap."]).await;
    let set = |owner: Principal, adoption| SetAdoption {
        owner,
        claim_id: claim_id.clone(),
        adoption,
        reason: Some("wrong".to_owned()),
        now: t.now(),
    };
    let foreign = t.store.run(set(Principal::user("other"), Adoption::Rejected)).await;
    assert!(matches!(foreign, Err(StoreError::NotFound { what: "claim", .. })));
    let revision = t.task(&task).await.revision;
    t.store.run(set(Principal::local_user(), Adoption::Rejected)).await.unwrap();
    assert!(t.task(&task).await.revision > revision, "a watcher sees it");
    let claim = t.store.run(ReadMaterials { task_id: task.clone(), wish: all() }).await.unwrap().claims.remove(0).claim;
    assert_eq!((claim.adoption, claim.rejection_reason.as_deref()), (Adoption::Rejected, Some("wrong")));
    t.store.run(set(Principal::local_user(), Adoption::Adopted)).await.unwrap();
    let claim = t.store.run(ReadMaterials { task_id: task.clone(), wish: all() }).await.unwrap().claims.remove(0).claim;
    assert_eq!((claim.adoption, claim.rejection_reason), (Adoption::Adopted, None));
}

pub async fn a_corrected_edge_scores_anew_and_is_one_sample(t: TestStore) {
    let (task, job) = searching(&t).await;
    let (claim_id, _) = found(&t, &job, "https://a.org/1", &["Waiting is cheap."]).await;
    let (_, other) = found(&t, &job, "https://b.org/1", &["It is."]).await;
    let edges = vec![edge(&claim_id, &other[0].id, Relation::Supports, 0.9)];
    t.store
        .run(RecordEvidence {
            lease: lease(&job),
            evidence: NewEvidence { edges, ..NewEvidence::default() },
            now: t.now(),
        })
        .await
        .unwrap();
    let view = t.store.run(ReadMaterials { task_id: task.clone(), wish: all() }).await.unwrap().claims.remove(0);
    let (origin, evidence) = (view.edges[0].edge.id.clone(), view.edges[1].edge.id.clone());
    let correct = |edge_id: &EdgeId, relation| CorrectEdge {
        owner: Principal::local_user(),
        edge_id: edge_id.clone(),
        relation,
        reason: None,
        now: t.now(),
    };
    let same = t.store.run(correct(&evidence, Relation::Supports)).await.unwrap();
    assert_eq!((same.sample_id, same.confidence), (None, 667), "a person's word is worth one");
    let changed = t.store.run(correct(&evidence, Relation::Refutes)).await.unwrap();
    assert_eq!((changed.previous, changed.confidence, changed.source.as_str()), (Relation::Supports, 333, "judge"));
    let samples = t.store.run(ReadSamples { source: "judge".to_owned(), rows_max: 10 }).await.unwrap();
    assert_eq!((samples.len(), &samples[0].edge_id, samples[0].correct), (1, &evidence, Relation::Refutes));
    assert_eq!(samples[0].stance.supports, 0.9, "the judge's own number, as it was");
    assert!(matches!(t.store.run(correct(&origin, Relation::Refutes)).await, Err(StoreError::Refused { .. })));
    let edge = &t.store.run(ReadMaterials { task_id: task.clone(), wish: all() }).await.unwrap().claims.remove(1).edges
        [1]
    .edge;
    assert!(edge.is_corrected && edge.probability == 1.0);
}

pub async fn a_rollback_restores_the_exact_version(t: TestStore) {
    let add = async |scale: f64| {
        let calibration = Calibration { method: CalibrationMethod::Temperature, scale, shift: 0.0 };
        let new = NewCalibration {
            source: "judge".to_owned(),
            calibration,
            samples_used: 10,
            brier_before: 0.25,
            brier_after: 0.1 + 0.2,
            now: t.now(),
        };
        t.store.run(new).await.unwrap()
    };
    let back = |version| RollBack { source: "judge".to_owned(), version, reason: "worse".to_owned(), now: t.now() };
    assert!(t.store.run(ReadCalibration("judge".to_owned())).await.unwrap().is_none());
    assert!(t.store.run(back(None)).await.is_err(), "there is nothing to go back to");
    let first = add(1.0 / 3.0).await;
    assert!(t.store.run(back(None)).await.is_err(), "nor before the first");
    add(0.5).await;
    assert_eq!(add(0.7).await.version, 3);
    let rolled = t.store.run(back(Some(1))).await.unwrap();
    assert_eq!((rolled.to.version, rolled.previous_version), (1, 3));
    let now = t.store.run(ReadCalibration("judge".to_owned())).await.unwrap().unwrap();
    assert_eq!(now, first, "to the last digit");
    assert_eq!(add(0.9).await.version, 4, "a number is never used twice");
    assert_eq!(t.store.run(ReadCalibrationVersions(Some("judge".to_owned()))).await.unwrap().len(), 4);
    let log = t.store.run(ReadRollbacks(None)).await.unwrap();
    assert_eq!((log.len(), log[0].reason.as_str(), log[0].to.version), (1, "worse", 1));
}

pub async fn evaluations_are_kept_as_they_were(t: TestStore) {
    let pairs = [(0.9, true), (0.2, false)];
    let evaluation = Evaluation {
        id: EvaluationId::mint(t.now()),
        source: "judge".to_owned(),
        brier_score: 0.025,
        brier_score_calibrated: 0.1 + 0.2,
        expected_calibration_error: 0.15,
        samples_evaluated: 2,
        bins: bins(&pairs),
        calibration_version: 0,
        evaluated_at: t.now(),
    };
    t.store.run(AddEvaluation(evaluation.clone())).await.unwrap();
    let filter = EvaluationFilter { rows_max: 10, ..EvaluationFilter::default() };
    assert_eq!(t.store.run(ReadEvaluations(filter.clone())).await.unwrap(), [evaluation]);
    let other = EvaluationFilter { source: Some("other".to_owned()), ..filter };
    assert!(t.store.run(ReadEvaluations(other.clone())).await.unwrap().is_empty());
}
