//! Asking the engines: all at once, each at its own pace, and none that has been failing of late.

use std::sync::Arc;

use futures_util::future::join_all;

use matsu_core::error_code::ErrorCode;
use matsu_core::job::Retry;
use matsu_core::limits::RATE_LIMITED_PAUSE;
use matsu_core::ports::search_engine::{EngineError, EngineRequest, Pace, SearchEngine};
use matsu_core::ports::store::StoreError;
use matsu_core::research::merge::Hit;
use matsu_core::research::search::EngineFailure;

use crate::runtime::Runtime;

use super::halt::Halt;
use super::kit::ResearchKit;

/// What the engines said.
#[derive(Debug, Default)]
pub struct Answers {
    pub lists: Vec<(String, Vec<Hit>)>,
    pub failures: Vec<EngineFailure>,
}

enum Asked {
    Hits(Vec<Hit>),
    /// It is left alone for now.
    CoolingDown,
    Failed(String),
}

/// Asks all of these. Fails only if none gave an answer.
pub async fn ask(
    runtime: &Runtime,
    kit: &ResearchKit,
    named: &[String],
    request: &EngineRequest,
) -> Result<Answers, Halt> {
    let engines = kit.engines(named);
    let asked = join_all(engines.iter().map(|engine| ask_one(runtime, kit, engine, request))).await;
    let mut answers = Answers::default();
    let mut all_cooling = true;
    for (engine, asked) in engines.iter().zip(asked) {
        let name = engine.name().to_owned();
        match asked? {
            Asked::Hits(hits) => answers.lists.push((name, hits)),
            Asked::CoolingDown => {
                answers.failures.push(EngineFailure { engine: name, reason: "cooling down".to_owned() });
            }
            Asked::Failed(reason) => {
                all_cooling = false;
                answers.failures.push(EngineFailure { engine: name, reason });
            }
        }
    }
    if !answers.lists.is_empty() {
        return Ok(answers);
    }
    let reasons: Vec<String> = answers.failures.iter().map(|f| format!("{}: {}", f.engine, f.reason)).collect();
    let (code, why, retry) = match (engines.is_empty(), all_cooling) {
        (true, _) => (ErrorCode::SerpSearchFailed, "no search engine is configured".to_owned(), Retry::Never),
        (false, true) => (ErrorCode::AllEnginesBlocked, reasons.join("; "), Retry::Never),
        (false, false) => (ErrorCode::SerpSearchFailed, reasons.join("; "), Retry::IfAllowed),
    };
    Err(Halt::Failed { code, why, retry })
}

async fn ask_one(
    runtime: &Runtime,
    kit: &ResearchKit,
    engine: &Arc<dyn SearchEngine>,
    request: &EngineRequest,
) -> Result<Asked, StoreError> {
    let (store, clock, name) = (runtime.store(), runtime.clock(), engine.name());
    if store.breaker(name).await?.is_open(clock.now()) {
        return Ok(Asked::CoolingDown);
    }
    let key = format!("engine/{name}");
    let turnstile = kit.turnstile(&key);
    let answer = match engine.pace() {
        Pace::Local => engine.search(request).await,
        Pace::Remote { step } => {
            let _one_at_a_time = turnstile.lock().await;
            let step_ms = i64::try_from(step.as_millis()).unwrap_or(i64::MAX);
            let turn = store.take_turn(&key, step_ms, clock.now()).await?;
            clock.sleep(turn.since(clock.now())).await;
            let answer = engine.search(request).await;
            // When it arrived nobody here knows, but not after it was answered: counted from now the step is kept.
            store.hold_turns(&key, clock.now().plus(step)).await?;
            answer
        }
    };
    // Read again: while we asked, another search may have had more or less luck.
    let before = store.breaker(name).await?;
    match answer {
        Ok(hits) => {
            if before.failures > 0 {
                store.set_breaker(name, &before.after_success()).await?;
            }
            Ok(Asked::Hits(hits))
        }
        Err(error) => {
            if let EngineError::RateLimited { retry_after } = &error {
                let pause = retry_after.unwrap_or(RATE_LIMITED_PAUSE).max(RATE_LIMITED_PAUSE);
                store.hold_turns(&key, clock.now().plus(pause)).await?;
            }
            store.set_breaker(name, &before.after_failure(clock.now())).await?;
            tracing::info!(engine = name, %error, "a search engine gave no answer");
            Ok(Asked::Failed(error.to_string()))
        }
    }
}
