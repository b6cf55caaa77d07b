//! The open event streams of this process.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use matsu_core::access::Viewer;
use matsu_core::clock::Timestamp;
use matsu_core::error_code::ErrorCode;
use matsu_core::id::ErrorId;
use matsu_core::limits::STREAMS_MAX;
use matsu_core::principal::Principal;

use crate::problem::Problem;

/// The open streams of this process.
#[derive(Clone, Default)]
pub struct Streams {
    open: Arc<Mutex<HashMap<String, Arc<Following>>>>,
}

/// What one stream follows.
struct Following {
    viewer: Viewer,
    topics: Mutex<BTreeSet<String>>,
}

/// Takes the stream off the list when it ends, however it ends.
pub struct OpenStream {
    streams: Streams,
    pub id: String,
    following: Arc<Following>,
}

impl Streams {
    pub fn open(&self, now: Timestamp, viewer: Viewer, topics: BTreeSet<String>) -> Result<OpenStream, Problem> {
        let mut open = self.lock();
        if open.len() >= STREAMS_MAX {
            return Err(Problem::new(ErrorCode::LimitExceeded, format!("at most {STREAMS_MAX} streams can be open")));
        }
        // As hard to guess as any other id.
        let id = ErrorId::mint(now).as_str().replacen("err_", "stream_", 1);
        let following = Arc::new(Following { viewer, topics: Mutex::new(topics) });
        open.insert(id.clone(), Arc::clone(&following));
        Ok(OpenStream { streams: self.clone(), id, following })
    }

    /// Lets a stream of this principal follow other topics; `false` if there is none of that id.
    pub fn follow(&self, id: &str, principal: &Principal, topics: BTreeSet<String>) -> bool {
        let stream = self.lock().get(id).filter(|stream| stream.viewer.principal == *principal).cloned();
        let Some(stream) = stream else { return false };
        *stream.topics.lock().unwrap_or_else(PoisonError::into_inner) = topics;
        true
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Following>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenStream {
    pub fn viewer(&self) -> &Viewer {
        &self.following.viewer
    }

    /// Whether the jobs of this task are wanted.
    pub fn follows_jobs_of(&self, task: &str) -> bool {
        let topics = self.following.topics.lock().unwrap_or_else(PoisonError::into_inner);
        topics.contains("queue") || topics.contains(&format!("task/{task}"))
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.streams.lock().remove(&self.id);
    }
}
