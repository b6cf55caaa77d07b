//! Asking the engines: all at once, each at its own pace, and none that has been failing of late. Why an engine gave no
//! answer is kept with the search, also when it was not asked because of an earlier failure.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;

use matsu_core::clock::Timestamp;
use matsu_core::error_code::ErrorCode;
use matsu_core::job::Retry;
use matsu_core::limits::RATE_LIMITED_PAUSE;
use matsu_core::ports::search_engine::{EngineError, EngineHits, EngineRequest, Pace, SearchEngine, UnreadDocument};
use matsu_core::ports::store::{HoldTurns, ReadBreaker, SetBreaker, StoreError, TakeTurn};
use matsu_core::research::merge::Hit;
use matsu_core::research::search::EngineFailure;

use crate::runtime::Runtime;

use super::stop_cause::StopCause;
use crate::runtime::ResearchKit;

/// An engine whose turn is further away than this is not waited for by a search that holds a permit.
const TURN_WAIT_MAX: Duration = Duration::from_secs(30);

/// What the engines found.
#[derive(Debug, Default)]
pub struct EngineReplies {
    pub lists: Vec<(String, Vec<Hit>)>,
    pub failures: Vec<EngineFailure>,
    /// Documents that could not be read.
    pub unread: Vec<UnreadDocument>,
    /// No engine answered, and one of them named the time at which it may be asked again.
    pub not_before: Option<Timestamp>,
}

enum Asked {
    Hits(EngineHits),
    /// It was not asked, because of earlier failures.
    CoolingDown(String),
    /// It asked to be left alone until then.
    TooOften(Timestamp),
    Failed(String),
}

/// Asks all of these. Fails only if none gave an answer, and none named a time for the next try.
pub async fn ask(
    runtime: &Runtime,
    kit: &ResearchKit,
    named: &[String],
    request: &EngineRequest,
) -> Result<EngineReplies, StopCause> {
    let mut engines = kit.engines(named);
    if named.is_empty() && request.folders.is_empty() {
        // It would answer with an empty list, and a search whose other engines all failed would not read as failed.
        engines.retain(|engine| !engine.needs_folder());
    }
    let asked = join_all(engines.iter().map(|engine| ask_one(runtime, kit, engine, request))).await;
    let mut answers = EngineReplies::default();
    let mut all_cooling = true;
    for (engine, asked) in engines.iter().zip(asked) {
        let name = engine.name();
        let mut fail = |reason: String| answers.failures.push(EngineFailure { engine: name.to_owned(), reason });
        match asked? {
            Asked::Hits(found) => {
                if found.hits.is_empty() && found.missing.is_empty() {
                    fail(NO_RESULTS.to_owned());
                }
                found.missing.into_iter().for_each(&mut fail);
                answers.unread.extend(found.unread);
                answers.lists.push((name.to_owned(), found.hits));
            }
            Asked::CoolingDown(reason) => fail(reason),
            Asked::TooOften(until) => {
                all_cooling = false;
                fail(format!("rate-limited (429); next try at {until}"));
                answers.not_before = Some(answers.not_before.map_or(until, |first| first.min(until)));
            }
            Asked::Failed(reason) => {
                all_cooling = false;
                fail(reason);
            }
        }
    }
    if !answers.lists.is_empty() || answers.not_before.is_some() {
        return Ok(answers);
    }
    let (code, why, retry) = match (engines.is_empty(), all_cooling) {
        (true, _) => (ErrorCode::SerpSearchFailed, "no search engine is configured".to_owned(), Retry::Never),
        (false, true) => (ErrorCode::AllEnginesBlocked, in_words(&answers.failures), Retry::Never),
        (false, false) => (ErrorCode::SerpSearchFailed, in_words(&answers.failures), Retry::IfAllowed),
    };
    Err(StopCause::Failed { code, why, retry })
}

/// The reason of an engine that answered with an empty list.
pub const NO_RESULTS: &str = "no results";

/// Which engines failed, and why.
pub fn in_words(failures: &[EngineFailure]) -> String {
    failures.iter().map(|f| format!("{}: {}", f.engine, f.reason)).collect::<Vec<_>>().join("; ")
}

async fn ask_one(
    runtime: &Runtime,
    kit: &ResearchKit,
    engine: &Arc<dyn SearchEngine>,
    request: &EngineRequest,
) -> Result<Asked, StoreError> {
    let (store, clock, name) = (runtime.store(), runtime.clock(), engine.name());
    let breaker = store.run(ReadBreaker(name.to_owned())).await?;
    if let Some(until) = breaker.open_until.filter(|_| breaker.is_open(clock.now())) {
        let cause = breaker.cause.as_ref().map(|cause| format!(", the last time with: {cause}")).unwrap_or_default();
        let times = breaker.failures;
        return Ok(Asked::CoolingDown(format!("not asked until {until}: it failed {times} times in a row{cause}")));
    }
    let key = format!("engine/{name}");
    let turnstile = kit.turnstile(&key);
    let answer = match engine.pace() {
        Pace::Local => engine.search(request).await,
        Pace::Remote { step } => {
            let _one_at_a_time = turnstile.lock().await;
            let step_ms = i64::try_from(step.as_millis()).unwrap_or(i64::MAX);
            let turn = store.run(TakeTurn { key: key.clone(), step_ms, now: clock.now() }).await?;
            if turn.since(clock.now()) > TURN_WAIT_MAX {
                return Ok(Asked::TooOften(turn));
            }
            clock.sleep(turn.since(clock.now())).await;
            let answer = engine.search(request).await;
            // When the request arrived there is not known, but not after it was answered: counted from now the step is
            // kept.
            store.run(HoldTurns { key: key.clone(), until: clock.now().plus(step) }).await?;
            answer
        }
    };
    // Read again: while we asked, another search may have had more or less luck.
    let before = store.run(ReadBreaker(name.to_owned())).await?;
    match answer {
        Ok(found) => {
            if before.failures > 0 {
                store.run(SetBreaker { engine: name.to_owned(), breaker: before.after_success() }).await?;
            }
            Ok(Asked::Hits(found))
        }
        // It named its own pause: that is no failure of the engine.
        Err(EngineError::RateLimited { retry_after }) => {
            let until = clock.now().plus(retry_after.unwrap_or(RATE_LIMITED_PAUSE));
            store.run(HoldTurns { key: key.clone(), until }).await?;
            Ok(Asked::TooOften(until))
        }
        Err(error) => {
            let cause = error.to_string();
            store
                .run(SetBreaker { engine: name.to_owned(), breaker: before.after_failure(clock.now(), &cause) })
                .await?;
            tracing::info!(engine = name, cause, "a search engine gave no answer");
            Ok(Asked::Failed(cause))
        }
    }
}
