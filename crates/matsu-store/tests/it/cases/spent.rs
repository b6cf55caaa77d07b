//! What runs have cost: each run once, for its owner.

use std::time::Duration;

use matsu_core::clock::Timestamp;
use matsu_core::id::RunId;
use matsu_core::ports::store::{NoteSpent, ReadSpent};
use matsu_core::principal::Principal;
use matsu_core::usage::{Spent, Usage};

use crate::harness::TestStore;

const MINUTE: Duration = Duration::from_secs(60);

fn run(owner: &Principal, id: &str, at: Timestamp, usage: Option<Usage>) -> Spent {
    Spent {
        run_id: RunId::from_text(id),
        owner: owner.clone(),
        at,
        agent: "claude".to_owned(),
        model: usage.map(|_| "opus".to_owned()),
        project: Some("/work".to_owned()),
        usage,
    }
}

pub async fn a_run_that_is_noted_again_is_counted_once(t: TestStore) {
    let (owner, now) = (Principal::local_user(), t.now());
    let unknown = run(&owner, "run_1", now, None);
    t.store.run(NoteSpent(unknown.clone())).await.unwrap();
    assert_eq!(
        t.store
            .run(ReadSpent { owner: owner.clone(), from: now, until: now.plus(MINUTE), rows_max: 10 })
            .await
            .unwrap(),
        [unknown]
    );
    let usage = Usage { input_tokens: 7, output_tokens: 3, cost_usd: Some(0.125) };
    let known = run(&owner, "run_1", now.plus(Duration::from_secs(1)), Some(usage));
    t.store.run(NoteSpent(known.clone())).await.unwrap();
    assert_eq!(
        t.store
            .run(ReadSpent { owner: owner.clone(), from: now, until: now.plus(MINUTE), rows_max: 10 })
            .await
            .unwrap(),
        [known]
    );
}

pub async fn each_owner_reads_its_own_runs_of_a_span(t: TestStore) {
    let (owner, other, now) = (Principal::local_user(), Principal::user("other"), t.now());
    let usage = Some(Usage { input_tokens: 1, output_tokens: 1, cost_usd: None });
    let (first, last) = (run(&owner, "run_1", now, usage), run(&owner, "run_2", now.plus(MINUTE), usage));
    for spent in [&last, &first, &run(&other, "run_3", now, usage)] {
        t.store.run(NoteSpent(spent.clone())).await.unwrap();
    }
    assert_eq!(
        t.store
            .run(ReadSpent { owner: owner.clone(), from: now, until: now.plus(MINUTE), rows_max: 10 })
            .await
            .unwrap(),
        [first.clone()]
    );
    assert_eq!(
        t.store
            .run(ReadSpent { owner: owner.clone(), from: now, until: now.plus(2 * MINUTE), rows_max: 10 })
            .await
            .unwrap(),
        [first.clone(), last]
    );
    assert_eq!(
        t.store
            .run(ReadSpent { owner: owner.clone(), from: now, until: now.plus(2 * MINUTE), rows_max: 1 })
            .await
            .unwrap(),
        [first]
    );
}
