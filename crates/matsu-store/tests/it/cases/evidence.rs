//! Evidence: written under the fence and with its checkpoint, seen by its owner, cleared without touching others'.

use std::time::Duration;

use matsu_core::budget::{BudgetLine, BudgetUnit};
use matsu_core::id::{ClaimId, FragmentId, PageId, TaskId};
use matsu_core::job::{Job, JobKind, JobState};
use matsu_core::ports::store::{
    FragmentsOf, MaterialsWish, NewClaim, NewEdge, NewEvidence, NewHit, NewPage, Only, PageByUrl, ReadBudget,
    ReadEvidenceTotals, ReadMaterials, RecordEvidence, Reserve,
};
use matsu_core::principal::Principal;
use matsu_core::research::evidence::{Extraction, Fragment, PageKey, PageOrigin, Relation, SourcePage};
use matsu_core::research::fingerprint::fingerprint;
use matsu_core::research::search::SearchTally;
use matsu_core::research::stance::Stance;
use matsu_core::task::{StopMode, StopReason, TaskKind};

use crate::harness::{TestStore, assert_lease_lost, lease};

/// A research task with one running search.
pub async fn searching(t: &TestStore) -> (TaskId, Job) {
    let mut new = t.new_task(TaskKind::Research);
    new.budget = vec![BudgetLine { unit: BudgetUnit::Pages, limit: 20, used: 0 }];
    new.jobs = vec![t.new_job(JobKind::Search)];
    let task = t.insert(new).await;
    (task.id, t.claim_one().await)
}

pub fn page(t: &TestStore, url: &str, texts: &[&str]) -> NewPage {
    let id = PageId::mint(t.now());
    let fragments = texts.iter().enumerate().map(|(n, text)| Fragment {
        id: FragmentId::mint(t.now()),
        page_id: id.clone(),
        position: n as u32,
        text: (*text).to_owned(),
        headings: "Guide".into(),
        offset: n as u32 * 100,
        hash: fingerprint(text),
        sketch: u64::MAX - n as u64,
    });
    let fragments = fragments.collect();
    let page = SourcePage {
        id,
        url: url.to_owned(),
        final_url: url.to_owned(),
        domain: url.split('/').nth(2).unwrap().to_owned(),
        owner: None,
        origin: PageOrigin::Http,
        title: "A page".to_owned(),
        language: Some("en".to_owned()),
        year: Some(2025),
        doi: None,
        authors: vec!["Ada".to_owned()],
        is_primary: false,
        content_hash: fingerprint(texts.concat()),
        etag: None,
        last_modified: None,
        fetched_at: t.now(),
    };
    NewPage { page, fragments }
}

pub fn claim(t: &TestStore, text: &str, fragment: &FragmentId) -> NewClaim {
    NewClaim {
        also: Vec::new(),
        id: ClaimId::mint(t.now()),
        text: text.to_owned(),
        quote: text.to_owned(),
        fragment_id: fragment.clone(),
        context: String::new(),
        relevance: 0,
        parts: Vec::new(),
        extraction: Extraction::Extractive,
    }
}

/// One page with one claim in its first fragment. Returns the claim and the fragments.
pub async fn found(t: &TestStore, job: &Job, url: &str, texts: &[&str]) -> (ClaimId, Vec<Fragment>) {
    let page = page(t, url, texts);
    let new = claim(t, texts[0], &page.fragments[0].id);
    let (id, fragments) = (new.id.clone(), page.fragments.clone());
    let evidence = NewEvidence { page: Some(page), claims: vec![new], ..NewEvidence::default() };
    t.store.run(RecordEvidence { lease: lease(job), evidence, now: t.now() }).await.unwrap();
    (id, fragments)
}

pub fn edge(claim: &ClaimId, fragment: &FragmentId, relation: Relation, probability: f64) -> NewEdge {
    let stance = match relation {
        Relation::Supports => Stance::from_weights(probability, 0.0, 1.0 - probability),
        _ => Stance::from_weights(0.0, probability, 1.0 - probability),
    };
    NewEdge {
        claim_id: claim.clone(),
        fragment_id: fragment.clone(),
        stance,
        probability,
        relation,
        source: "judge".to_owned(),
        calibration_version: 0,
    }
}

pub fn all() -> MaterialsWish {
    MaterialsWish { rows_max: 50, ..MaterialsWish::default() }
}

pub async fn a_claim_leads_back_to_its_page(t: TestStore) {
    let (task, job) = searching(&t).await;
    let (id, fragments) = found(&t, &job, "https://a.org/1", &["Waiting is cheap.", "Polling is not."]).await;
    let materials = t.store.run(ReadMaterials { task_id: task.clone(), wish: all() }).await.unwrap();
    assert_eq!((materials.total, materials.claims.len(), materials.next), (1, 1, None));
    let view = &materials.claims[0];
    assert_eq!((&view.claim.id, view.claim.job_id.clone()), (&id, job.id.clone()));
    assert_eq!((view.confidence, view.uncertainty, view.controversy), (500, 289, 0), "its own page is no evidence");
    let origin = &view.edges[0];
    assert_eq!((origin.edge.relation, &origin.fragment.id), (Relation::Origin, &fragments[0].id));
    assert_eq!((origin.page.url.as_str(), origin.fragment.sketch), ("https://a.org/1", u64::MAX));
    let totals = t.store.run(ReadEvidenceTotals(task.clone())).await.unwrap();
    assert_eq!((totals.pages, totals.fragments, totals.claims, totals.verified_claims), (1, 2, 1, 0));
}

pub async fn new_evidence_bumps_the_revision(t: TestStore) {
    let (task, job) = searching(&t).await;
    let revision = async || t.task(&task).await.revision;
    let before = revision().await;
    let (id, _) = found(&t, &job, "https://a.org/1", &["Waiting is cheap."]).await;
    assert_eq!(revision().await, before + 1, "a page and a claim");
    let (_, other) = found(&t, &job, "https://b.org/1", &["Yes, it is."]).await;
    let edges = vec![edge(&id, &other[0].id, Relation::Supports, 0.9)];
    let evidence = NewEvidence { edges, ..NewEvidence::default() };
    t.store.run(RecordEvidence { lease: lease(&job), evidence: evidence.clone(), now: t.now() }).await.unwrap();
    assert_eq!(revision().await, before + 3, "an edge");
    t.store.run(RecordEvidence { lease: lease(&job), evidence, now: t.now() }).await.unwrap();
    assert_eq!(revision().await, before + 3, "the same edge again changes nothing");
    let task = t.task(&task).await;
    assert!(task.finished_revision <= before, "no evidence alone is worth a model's turn");
}

pub async fn a_second_origin_bumps_the_revision(t: TestStore) {
    let (task, job) = searching(&t).await;
    let (_, fragments) = found(&t, &job, "https://a.org/1", &["Waiting is cheap.", "Cheap.", "Very cheap."]).await;
    let origins = async || {
        let found = t.store.run(ReadMaterials { task_id: task.clone(), wish: all() }).await.unwrap();
        (found.total, found.claims[0].edges.len(), t.task(&task).await.revision)
    };
    let (_, _, before) = origins().await;
    // Already stored pages: nothing but the origin is new.
    let elsewhere = claim(&t, "Waiting is cheap.", &fragments[1].id);
    let record = async |claim: NewClaim| {
        let evidence = NewEvidence { claims: vec![claim], ..NewEvidence::default() };
        t.store.run(RecordEvidence { lease: lease(&job), evidence, now: t.now() }).await.unwrap().claims
    };
    assert_eq!(record(elsewhere.clone()).await, 0, "the statement is known");
    assert_eq!(origins().await, (1, 2, before + 1), "its second origin is seen");
    assert_eq!(record(elsewhere.clone()).await, 0);
    assert_eq!(origins().await, (1, 2, before + 1), "the same origin again changes nothing");
    assert_eq!(record(NewClaim { also: vec![fragments[2].id.clone()], ..elsewhere }).await, 0);
    assert_eq!(origins().await, (1, 3, before + 2), "an origin that is named besides its own");
}

pub async fn evidence_scores_its_claim(t: TestStore) {
    let (task, job) = searching(&t).await;
    let (id, _) = found(&t, &job, "https://a.org/1", &["Waiting is cheap."]).await;
    let (_, one) = found(&t, &job, "https://b.org/1", &["Yes, it is."]).await;
    let (_, two) = found(&t, &job, "https://c.org/1", &["No, it is not."]).await;
    let edges = vec![edge(&id, &one[0].id, Relation::Supports, 0.9), edge(&id, &two[0].id, Relation::Refutes, 0.8)];
    let evidence = NewEvidence { edges: edges.clone(), ..NewEvidence::default() };
    assert_eq!(t.store.run(RecordEvidence { lease: lease(&job), evidence, now: t.now() }).await.unwrap().edges, 2);
    let again = NewEvidence { edges, ..NewEvidence::default() };
    assert_eq!(
        t.store.run(RecordEvidence { lease: lease(&job), evidence: again, now: t.now() }).await.unwrap().edges,
        0,
        "one edge joins the two"
    );
    let contested = MaterialsWish { only: Only::Contested, ..all() };
    let materials = t.store.run(ReadMaterials { task_id: task.clone(), wish: contested }).await.unwrap();
    let view = &materials.claims[0];
    assert_eq!((view.confidence, view.uncertainty, view.controversy), (514, 231, 471));
    assert_eq!(view.edges[1].edge.probability, 0.9, "every digit comes back");
    let totals = t.store.run(ReadEvidenceTotals(task.clone())).await.unwrap();
    assert_eq!((totals.claims, totals.verified_claims, totals.refuted_claims), (3, 1, 1));
}

pub async fn a_source_has_one_vote(t: TestStore) {
    let (task, job) = searching(&t).await;
    let (id, _) = found(&t, &job, "https://a.org/1", &["Waiting is cheap."]).await;
    let (_, one) = found(&t, &job, "https://b.org/1", &["Yes, it is.", "It is.", "No, it is not."]).await;
    let (_, two) = found(&t, &job, "https://b.org/2", &["It is indeed."]).await;
    let edges = vec![
        edge(&id, &one[0].id, Relation::Supports, 0.6),
        edge(&id, &one[1].id, Relation::Supports, 0.9),
        edge(&id, &one[2].id, Relation::Refutes, 0.8),
        edge(&id, &two[0].id, Relation::Supports, 0.7),
    ];
    t.store
        .run(RecordEvidence {
            lease: lease(&job),
            evidence: NewEvidence { edges, ..NewEvidence::default() },
            now: t.now(),
        })
        .await
        .unwrap();
    let view = t.store.run(ReadMaterials { task_id: task.clone(), wish: all() }).await.unwrap().claims.remove(0);
    assert_eq!((&view.claim.id, view.edges.len()), (&id, 5), "all are kept");
    assert_eq!((view.confidence, view.controversy), (655, 0), "and the strongest of them counts");
    let totals = t.store.run(ReadEvidenceTotals(task.clone())).await.unwrap();
    assert_eq!((totals.verified_claims, totals.refuted_claims), (1, 0));
}

pub async fn the_same_statement_elsewhere_is_one_claim_with_two_origins(t: TestStore) {
    let (task, job) = searching(&t).await;
    let (id, _) = found(&t, &job, "https://a.org/1", &["Waiting is cheap."]).await;
    let (_, other) = found(&t, &job, "https://b.org/1", &["Waiting is cheap.", "Very cheap."]).await;
    let third = page(&t, "https://c.org/1", &["Waiting is not cheap.", "It is dear."]);
    let also = NewClaim { also: vec![other[1].id.clone()], ..claim(&t, "Dear.", &third.fragments[0].id) };
    let evidence = NewEvidence { page: Some(third), claims: vec![also], ..NewEvidence::default() };
    assert_eq!(t.store.run(RecordEvidence { lease: lease(&job), evidence, now: t.now() }).await.unwrap().claims, 1);
    let found = t.store.run(ReadMaterials { task_id: task.clone(), wish: all() }).await.unwrap();
    assert_eq!(found.total, 2);
    let urls = |at: usize| {
        let mut urls: Vec<&str> = found.claims[at].edges.iter().map(|edge| edge.page.url.as_str()).collect();
        urls.sort_unstable();
        urls
    };
    let place = found.claims.iter().position(|view| view.claim.id == id).unwrap();
    assert_eq!(urls(place), ["https://a.org/1", "https://b.org/1"]);
    assert_eq!(urls(1 - place), ["https://b.org/1", "https://c.org/1"], "the fragment that it names besides its own");
    assert!(found.claims.iter().flat_map(|view| &view.edges).all(|edge| edge.edge.relation == Relation::Origin));
    assert_eq!(found.claims[place].confidence, 500, "a copy confirms nothing");
}

pub async fn the_same_few_words_under_two_headings_are_two_claims(t: TestStore) {
    let (task, job) = searching(&t).await;
    for (n, (text, context)) in [
        ("Default: no timeout at all.", "Options › connectTimeout"),
        ("Default: no timeout at all.", "Options › readTimeout"),
        ("Default: no timeout at all.", "Options › readTimeout"),
        ("By default the client waits without any limit for an answer.", "Options › connectTimeout"),
        ("By default the client waits without any limit for an answer.", "Options › readTimeout"),
    ]
    .into_iter()
    .enumerate()
    {
        let new = page(&t, &format!("https://s{n}.org/1"), &[text]);
        let claims = vec![NewClaim { context: context.to_owned(), ..claim(&t, text, &new.fragments[0].id) }];
        let evidence = NewEvidence { page: Some(new), claims, ..NewEvidence::default() };
        t.store.run(RecordEvidence { lease: lease(&job), evidence, now: t.now() }).await.unwrap();
    }
    let materials = t.store.run(ReadMaterials { task_id: task, wish: all() }).await.unwrap();
    let mut seen: Vec<(&str, usize)> =
        materials.claims.iter().map(|view| (view.claim.context.as_str(), view.edges.len())).collect();
    seen.sort_unstable();
    assert_eq!(seen, [("Options › connectTimeout", 1), ("Options › connectTimeout", 2), ("Options › readTimeout", 2)]);
}

pub async fn a_statement_in_nearly_the_same_words_is_one_claim_with_two_origins(t: TestStore) {
    let (task, job) = searching(&t).await;
    let texts = [
        "Waiting is cheap if the server of a site answers only when a task has changed since the last call of it.",
        "Waiting is cheap if the server of the site answers only when a task has changed since the last call of it.",
        "Waiting is cheap if the server of a site answers only when a task has vanished since the last call of it.",
        "待つことは、前の呼び出しのあとで仕事が変わったときにだけ答えが返るなら、とても安い方法であると言われている。",
        "待つことは、前の呼び出しのあとで仕事が変わったときにだけ答えが返るなら、とても安い方法であるとよく言われている。",
        "待つことは、前の呼び出しのあとで仕事が変わったときにだけ答えが返るなら、とても安い方法ではないと言われている。",
    ];
    for (n, text) in texts.iter().enumerate() {
        found(&t, &job, &format!("https://s{n}.org/1"), &[text]).await;
    }
    let materials = t.store.run(ReadMaterials { task_id: task, wish: all() }).await.unwrap();
    let mut seen: Vec<(&str, usize)> =
        materials.claims.iter().map(|view| (view.claim.text.as_str(), view.edges.len())).collect();
    seen.sort_by_key(|(text, _)| texts.iter().position(|one| one == text));
    assert_eq!(seen, [(texts[0], 2), (texts[2], 1), (texts[3], 2), (texts[5], 1)]);
}

pub async fn evidence_and_checkpoint_are_one(t: TestStore) {
    let (task, job) = searching(&t).await;
    let reserved = t.store.run(Reserve { lease: lease(&job), unit: BudgetUnit::Pages, amount: 3 }).await.unwrap();
    let evidence = NewEvidence {
        page: Some(page(&t, "https://a.org/1", &["One."])),
        hits: vec![NewHit {
            engine: "local".to_owned(),
            rank: 1,
            url: "https://a.org/1".to_owned(),
            title: "A".to_owned(),
            snippet: String::new(),
        }],
        spent: vec![(reserved, 1)],
        tally: Some(SearchTally { pages_fetched: 1, ..SearchTally::default() }),
        checkpoint_json: Some(r#"{"done":1}"#.to_owned()),
        ..NewEvidence::default()
    };
    t.store.run(RecordEvidence { lease: lease(&job), evidence, now: t.now() }).await.unwrap();
    assert_eq!(t.job(&job.id).await.checkpoint_json.as_deref(), Some(r#"{"done":1}"#));
    assert_eq!(t.store.run(ReadBudget(task.clone())).await.unwrap()[0].used, 1);
    t.store.reap_node(&t.node, t.now()).await.unwrap();
    t.register(&t.node).await;
    let again = t.claim_one().await;
    assert_eq!(again.checkpoint_json.as_deref(), Some(r#"{"done":1}"#), "the next attempt goes on from there");
    assert_eq!(t.store.run(ReadBudget(task.clone())).await.unwrap()[0].used, 1);
}

pub async fn late_evidence_is_refused(t: TestStore) {
    let (task, job) = searching(&t).await;
    t.store.reap_node(&t.node, t.now()).await.unwrap();
    let late = NewEvidence { page: Some(page(&t, "https://a.org/1", &["Late."])), ..NewEvidence::default() };
    assert_lease_lost(t.store.run(RecordEvidence { lease: lease(&job), evidence: late, now: t.now() }).await);
    assert_eq!(t.store.run(ReadEvidenceTotals(task.clone())).await.unwrap().pages, 0);
    assert!(
        t.store
            .run(PageByUrl { reader: Principal::local_user(), url: "https://a.org/1".to_owned() })
            .await
            .unwrap()
            .is_none()
    );
}

pub async fn evidence_of_a_cancelled_search_is_left_out(t: TestStore) {
    let (task, job) = searching(&t).await;
    found(&t, &job, "https://a.org/1", &["Waiting is cheap."]).await;
    let stop = matsu_core::ports::store::StopTask {
        task_id: task.clone(),
        mode: StopMode::Immediate,
        reason: StopReason::UserCancelled,
        now: t.now(),
    };
    t.store.run(stop).await.unwrap();
    assert_eq!(t.job(&job.id).await.state, JobState::Cancelled);
    assert_eq!(t.store.run(ReadMaterials { task_id: task.clone(), wish: all() }).await.unwrap().total, 0);
    assert_eq!(t.store.run(ReadEvidenceTotals(task.clone())).await.unwrap().claims, 0);
}

pub async fn a_private_page_is_its_owners_alone(t: TestStore) {
    let (_, job) = searching(&t).await;
    let (me, other) = (Principal::local_user(), Principal::user("other"));
    let mut private = page(&t, "https://a.org/mine", &["Secret."]);
    private.page.owner = Some(me.clone());
    t.store
        .run(RecordEvidence {
            lease: lease(&job),
            evidence: NewEvidence { page: Some(private), ..NewEvidence::default() },
            now: t.now(),
        })
        .await
        .unwrap();
    let public = page(&t, "https://a.org/mine", &["Please log in."]);
    t.store
        .run(RecordEvidence {
            lease: lease(&job),
            evidence: NewEvidence { page: Some(public), ..NewEvidence::default() },
            now: t.now(),
        })
        .await
        .unwrap();
    let seen = async |who: &Principal| {
        t.store.run(PageByUrl { reader: who.clone(), url: "https://a.org/mine".to_owned() }).await.unwrap().unwrap()
    };
    assert_eq!(seen(&me).await.owner, Some(me.clone()));
    let theirs = seen(&other).await;
    assert_eq!(theirs.owner, None);
    assert_eq!(t.store.run(FragmentsOf(theirs.key())).await.unwrap()[0].text, "Please log in.");
}

pub async fn a_page_read_again_keeps_what_it_still_has(t: TestStore) {
    let (task, job) = searching(&t).await;
    let (_, first) = found(&t, &job, "https://a.org/1", &["Stays.", "Goes."]).await;
    t.pass(Duration::from_secs(1));
    let again = page(&t, "https://a.org/1", &["Comes.", "Stays."]);
    let recorded = t
        .store
        .run(RecordEvidence {
            lease: lease(&job),
            evidence: NewEvidence { page: Some(again), ..NewEvidence::default() },
            now: t.now(),
        })
        .await
        .unwrap();
    let id = recorded.page_id.unwrap();
    assert_eq!(id, first[0].page_id, "the same address is the same page");
    let key = PageKey { url: "https://a.org/1".to_owned(), owner: None };
    let now = t.store.run(FragmentsOf(key.clone())).await.unwrap();
    assert_eq!(now.iter().map(|f| f.text.as_str()).collect::<Vec<_>>(), ["Comes.", "Stays."]);
    assert_eq!(now[1].id, first[0].id);
    assert_eq!(
        t.store.run(ReadMaterials { task_id: task.clone(), wish: all() }).await.unwrap().claims[0].edges.len(),
        1,
        "its claim still stands"
    );
}

pub async fn the_same_claim_is_kept_once(t: TestStore) {
    let (task, job) = searching(&t).await;
    let (_, fragments) = found(&t, &job, "https://a.org/1", &["Once."]).await;
    let again = claim(&t, "Once.", &fragments[0].id);
    let evidence = NewEvidence { claims: vec![again], ..NewEvidence::default() };
    assert_eq!(t.store.run(RecordEvidence { lease: lease(&job), evidence, now: t.now() }).await.unwrap().claims, 0);
    assert_eq!(t.store.run(ReadMaterials { task_id: task.clone(), wish: all() }).await.unwrap().total, 1);
}
