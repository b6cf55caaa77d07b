//! Random operations against a simple model, on every backend.
//!
//! After every step the store must show what the model predicts: states, attempts, holders, counts, statuses, and
//! which jobs a claim gives out in which order. A failure is shrunk and printed as the shortest list of steps;
//! `PROPTEST_RNG_SEED` repeats a run, and `PROPTEST_CASES=25600` makes it a hundred times as long.

mod compare;
mod driver;
mod operations;
mod predict;
mod settle;
mod world;

use proptest::test_runner::{Config, TestCaseError, TestRunner};

use crate::harness::{Backend, TestStore};
use driver::Driver;
use operations::Step;

const STEPS_MAX: usize = 40;

/// Runs `cases` random lists of steps. `shared`: one store for all of them, emptied in between.
fn check(backend: Backend, cases: u32, shared: Option<&str>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let usual = Config::default();
    let cases = cases * usual.cases.div_ceil(256);
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 2_000, ..usual };
    let mut runner = TestRunner::new(config);
    let steps = proptest::collection::vec(operations::step(), 1..STEPS_MAX);
    let outcome = runner.run(&steps, |steps| {
        runtime.block_on(async {
            let store = match shared {
                Some(url) => crate::postgres_only::emptied(url).await,
                None => TestStore::open(backend).await,
            };
            run(store, &steps).await.map_err(TestCaseError::fail)
        })
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}

async fn run(store: TestStore, steps: &[Step]) -> Result<(), String> {
    let mut driver = Driver::new(store).await;
    for (at, step) in steps.iter().enumerate() {
        driver.step(step).await.map_err(|difference| format!("step {at}, {step:?}: {difference}"))?;
    }
    Ok(())
}

#[test]
fn the_memory_store_does_what_the_model_does() {
    check(Backend::memory, 400, None);
}

#[test]
fn the_sqlite_store_does_what_the_model_does() {
    check(Backend::sqlite, 100, None);
}

#[test]
fn the_postgres_store_does_what_the_model_does() {
    let url = crate::harness::postgres_url();
    check(Backend::postgres, 40, Some(&url));
}
