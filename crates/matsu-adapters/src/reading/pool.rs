//! The pool of reader processes: at most one per core, started when they are needed, used again, and replaced after a
//! crash, after so many documents and after a while without work.
//!
//! A document is blamed only for what it does to a reader that has read nothing else: if one that was in use before
//! dies, the document is read once more by a new one.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use matsu_core::clock::Clock;
use matsu_core::ports::extractor::{ExtractError, Extractor};
use matsu_core::ports::fetcher::FetchedPage;
use matsu_core::research::document::Document;
use matsu_reader::wire::{ReaderReply, Request};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::DocumentReader;
use super::process::ReaderProcess;

/// What the pool and its readers may take.
#[derive(Clone, Copy, Debug)]
pub struct ReaderLimits {
    pub processes_max: usize,
    /// A process is replaced after this many documents, so that what their parsers leave behind does not add up.
    pub documents_max: u32,
    /// Longest time for one document.
    pub time_max: Duration,
    /// A process without work ends after this time.
    pub idle_max: Duration,
}

impl Default for ReaderLimits {
    fn default() -> Self {
        Self {
            processes_max: std::thread::available_parallelism().map_or(2, usize::from),
            documents_max: 500,
            time_max: Duration::from_secs(20),
            idle_max: Duration::from_secs(60),
        }
    }
}

struct Idle {
    process: ReaderProcess,
    since: Instant,
}

/// Reader processes, and the documents that wait for one.
pub struct Readers {
    program: PathBuf,
    args: Vec<String>,
    limits: ReaderLimits,
    clock: Clock,
    turns: Semaphore,
    /// The one used last is the last.
    idle: Arc<Mutex<Vec<Idle>>>,
    /// Ends processes that have had no work for a while; there only while some are idle.
    keeper: Mutex<JoinSet<()>>,
}

impl Readers {
    /// `program` is started with `args` and must then use the protocol of `matsu_reader::wire`.
    #[must_use]
    pub fn new(program: PathBuf, args: Vec<String>, limits: ReaderLimits, clock: Clock) -> Self {
        let turns = Semaphore::new(limits.processes_max.max(1));
        let (idle, keeper) = (Arc::default(), Mutex::new(JoinSet::new()));
        Self { program, args, limits, clock, turns, idle, keeper }
    }

    /// Readers that are this very program, even if its file was replaced since it started.
    #[must_use]
    pub fn of_this_program(clock: Clock) -> Self {
        Self::new(PathBuf::from("/proc/self/exe"), vec!["__read".to_owned()], ReaderLimits::default(), clock)
    }

    /// One document, by a process that is idle or by a new one.
    async fn read(&self, request: &Request) -> Result<ReaderReply, ExtractError> {
        let used_before = lock(&self.idle).pop().map(|idle| idle.process);
        if let Some(process) = used_before
            && let Some(answer) = self.read_with(process, request, IfItDies::SayNothing).await
        {
            return answer;
        }
        let process = ReaderProcess::start(&self.program, &self.args)
            .map_err(|error| ExtractError::Unavailable(format!("no reader process can be started: {error}")))?;
        let answer = self.read_with(process, request, IfItDies::Explain).await;
        answer.unwrap_or_else(|| Err(ExtractError::Unavailable("the reader process ended".to_owned())))
    }

    /// `None`: the process died and may be to blame itself.
    async fn read_with(
        &self,
        mut process: ReaderProcess,
        request: &Request,
        if_it_dies: IfItDies,
    ) -> Option<Result<ReaderReply, ExtractError>> {
        match self.clock.within(self.limits.time_max, process.exchange(request)).await {
            Some(Ok(answer)) => {
                if process.documents < self.limits.documents_max {
                    self.keep(process);
                }
                Some(answer)
            }
            Some(Err(error)) => {
                let end = self.clock.within(self.limits.time_max, process.end()).await.unwrap_or_default();
                match if_it_dies {
                    IfItDies::SayNothing => None,
                    IfItDies::Explain => {
                        let why = end.why(&error);
                        tracing::warn!(media_type = request.media_type, why, "reader process ended on a document");
                        Some(Err(ExtractError::Malformed(why)))
                    }
                }
            }
            None => {
                process.kill();
                let seconds = self.limits.time_max.as_secs_f64();
                tracing::warn!(media_type = request.media_type, "a document took too long to read");
                Some(Err(ExtractError::Malformed(format!("reading it took longer than {seconds} s"))))
            }
        }
    }

    fn keep(&self, process: ReaderProcess) {
        lock(&self.idle).push(Idle { process, since: self.clock.instant() });
        let mut keeper = lock(&self.keeper);
        while keeper.try_join_next().is_some() {}
        if keeper.is_empty() {
            keeper.spawn(end_unused(Arc::clone(&self.idle), self.limits.idle_max, self.clock));
        }
    }
}

#[derive(Clone, Copy)]
enum IfItDies {
    SayNothing,
    Explain,
}

/// Until none is idle any more.
async fn end_unused(idle: Arc<Mutex<Vec<Idle>>>, idle_max: Duration, clock: Clock) {
    loop {
        clock.sleep(idle_max).await;
        let now = clock.instant();
        let mut idle = lock(&idle);
        // Dropped processes are killed and reaped.
        idle.retain(|idle| now.duration_since(idle.since) < idle_max);
        if idle.is_empty() {
            return;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[async_trait]
impl DocumentReader for Readers {
    async fn ask(&self, request: Request) -> Result<ReaderReply, ExtractError> {
        let Ok(_turn) = self.turns.acquire().await else {
            return Err(ExtractError::Unavailable("the readers are closed".to_owned()));
        };
        self.read(&request).await
    }
}

#[async_trait]
impl Extractor for Readers {
    async fn extract(&self, page: FetchedPage) -> Result<Document, ExtractError> {
        super::document(self, page.body, &page.media_type).await
    }
}
