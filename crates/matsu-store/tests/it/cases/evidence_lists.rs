//! Evidence as it is listed, counted and removed.

use std::time::Duration;

use matsu_core::job::JobKind;
use matsu_core::ports::store::{
    ClearOrphans, ClearTask, MaterialsWish, NewEvidence, PageByUrl, ReadMaterials, ReadSearches, RecordEvidence,
    Removal, SearchWish, TakeDaily,
};
use matsu_core::principal::Principal;
use matsu_core::research::evidence::Relation;
use matsu_core::research::search::{SearchStatus, SearchTally};

use super::evidence::{all, claim, edge, found, searching};
use crate::harness::{TestStore, lease};

pub async fn claims_come_in_pages_most_confident_first(t: TestStore) {
    let (task, job) = searching(&t).await;
    let mut claims = Vec::new();
    for n in 0..5 {
        claims.push(found(&t, &job, &format!("https://a{n}.org/"), &[&format!("Claim {n}.")]).await);
    }
    let edges = vec![
        edge(&claims[3].0, &claims[0].1[0].id, Relation::Supports, 0.9),
        edge(&claims[1].0, &claims[0].1[0].id, Relation::Refutes, 0.9),
    ];
    t.store
        .run(RecordEvidence {
            lease: lease(&job),
            evidence: NewEvidence { edges, ..NewEvidence::default() },
            now: t.now(),
        })
        .await
        .unwrap();
    let mut seen = Vec::new();
    let mut wish = MaterialsWish { rows_max: 2, ..MaterialsWish::default() };
    loop {
        let part = t.store.run(ReadMaterials { task_id: task.clone(), wish }).await.unwrap();
        assert_eq!(part.total, 5);
        seen.extend(part.claims.iter().map(|view| view.claim.text.clone()));
        match part.next {
            Some(next) => wish.after = Some(next),
            None => break,
        }
    }
    assert_eq!(seen, ["Claim 3.", "Claim 0.", "Claim 2.", "Claim 4.", "Claim 1."]);
    let sure = MaterialsWish { confidence_min: Some(501), ..all() };
    assert_eq!(t.store.run(ReadMaterials { task_id: task.clone(), wish: sure }).await.unwrap().total, 1);
}

pub async fn searches_are_listed_with_what_they_came_to(t: TestStore) {
    let (task, job) = searching(&t).await;
    t.pass(Duration::from_secs(10));
    let later = t.now();
    let second = t.enqueue(&task, JobKind::Search).await;
    let tally = SearchTally { pages_fetched: 3, ended_as: Some(SearchStatus::Satisfied), ..SearchTally::default() };
    t.store
        .run(RecordEvidence {
            lease: lease(&job),
            evidence: NewEvidence { tally: Some(tally.clone()), ..NewEvidence::default() },
            now: t.now(),
        })
        .await
        .unwrap();
    let list = t
        .store
        .run(ReadSearches { task_id: task.clone(), wish: SearchWish { rows_max: 10, changed_since: None } })
        .await
        .unwrap();
    assert_eq!(list.rows.iter().map(|row| &row.job.id).collect::<Vec<_>>(), [&job.id, &second]);
    assert_eq!(list.count(SearchStatus::Running), 1);
    t.complete(&job).await.unwrap();
    let list = t
        .store
        .run(ReadSearches { task_id: task.clone(), wish: SearchWish { rows_max: 10, changed_since: None } })
        .await
        .unwrap();
    assert_eq!(list.rows.iter().map(|row| &row.job.id).collect::<Vec<_>>(), [&second, &job.id], "unfinished first");
    assert_eq!(list.rows[1].tally, Some(tally));
    assert_eq!((list.count(SearchStatus::Satisfied), list.count(SearchStatus::Queued), list.total()), (1, 1, 2));
    t.pass(Duration::from_secs(10));
    let wish = SearchWish { rows_max: 10, changed_since: Some(t.now()) };
    assert_eq!(t.store.run(ReadSearches { task_id: task.clone(), wish }).await.unwrap().rows.len(), 0);
    let wish = SearchWish { rows_max: 10, changed_since: Some(later) };
    assert_eq!(t.store.run(ReadSearches { task_id: task.clone(), wish }).await.unwrap().rows.len(), 2);
}

pub async fn cleaning_a_task_leaves_others_alone(t: TestStore) {
    let (task, job) = searching(&t).await;
    let (_, shared) = found(&t, &job, "https://a.org/1", &["Shared."]).await;
    found(&t, &job, "https://mine.org/1", &["Mine."]).await;
    let (other, other_job) = searching(&t).await;
    let evidence = NewEvidence {
        reused: vec![shared[0].page_id.clone()],
        claims: vec![claim(&t, "Shared.", &shared[0].id)],
        ..NewEvidence::default()
    };
    t.store.run(RecordEvidence { lease: lease(&other_job), evidence, now: t.now() }).await.unwrap();
    let before = format!("{:?}", t.store.run(ReadMaterials { task_id: other.clone(), wish: all() }).await.unwrap());
    let nothing = t.store.run(ClearOrphans(Removal::DryRun)).await.unwrap();
    assert_eq!((nothing.edges, nothing.fragments, nothing.pages), (0, 0, 0));
    let cleared = t.store.run(ClearTask { task_id: task.clone(), now: t.now() }).await.unwrap();
    assert_eq!((cleared.claims, cleared.edges), (2, 2));
    assert_eq!(t.store.run(ReadMaterials { task_id: task.clone(), wish: all() }).await.unwrap().total, 0);
    assert!(
        t.store
            .run(PageByUrl { reader: Principal::local_user(), url: "https://mine.org/1".to_owned() })
            .await
            .unwrap()
            .is_some()
    );
    let dry = t.store.run(ClearOrphans(Removal::DryRun)).await.unwrap();
    let removed = t.store.run(ClearOrphans(Removal::Remove)).await.unwrap();
    assert_eq!(dry, removed, "a dry run says what would go, and lists it");
    assert_eq!(dry.listed.pages, ["https://mine.org/1"]);
    assert_eq!((dry.listed.fragments.len(), dry.listed.edges.len()), (1, 0));
    assert_eq!((removed.edges, removed.fragments, removed.pages), (0, 1, 1));
    assert_eq!(t.store.run(ClearOrphans(Removal::Remove)).await.unwrap(), Default::default(), "once is enough");
    assert!(
        t.store
            .run(PageByUrl { reader: Principal::local_user(), url: "https://mine.org/1".to_owned() })
            .await
            .unwrap()
            .is_none()
    );
    assert_eq!(
        format!("{:?}", t.store.run(ReadMaterials { task_id: other.clone(), wish: all() }).await.unwrap()),
        before
    );
}

pub async fn a_day_has_its_share(t: TestStore) {
    let mut taken = Vec::new();
    for _ in 0..3 {
        taken.push(t.store.run(TakeDaily { key: "a.org".to_owned(), uses_max: 2, now: t.now() }).await.unwrap());
    }
    assert_eq!(taken, [true, true, false]);
    assert!(t.store.run(TakeDaily { key: "b.org".to_owned(), uses_max: 2, now: t.now() }).await.unwrap());
    t.pass(Duration::from_secs(86_400));
    assert!(t.store.run(TakeDaily { key: "a.org".to_owned(), uses_max: 2, now: t.now() }).await.unwrap());
}
