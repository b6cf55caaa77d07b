//! Which results a principal has not read, and which of them replies to its clients have announced.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use matsu_core::id::TaskId;
use matsu_core::ports::store::{UnreadResult, UnreadResults};
use matsu_core::principal::Principal;

use crate::cursors::InstanceId;
use crate::runtime::Runtime;

const REMEMBERED_MAX: usize = 1_000;

/// Unread results that one line of news can be about.
const UNREAD_MAX: u32 = 100;

type Unread = Arc<Vec<UnreadResult>>;

/// Which results a principal has not read, remembered until something is published: most calls read nothing. And which
/// of them each client knows of.
#[derive(Debug, Default)]
pub struct News {
    listed: Mutex<HashMap<Principal, (u64, Unread)>>,
    announced: Mutex<HashMap<InstanceId, Announced>>,
}

/// What replies to one client have announced.
#[derive(Debug, Default)]
struct Announced {
    /// The client has made another call since: it knows.
    known: HashSet<TaskId>,
    /// In replies that may not have arrived.
    sent: HashSet<TaskId>,
}

impl News {
    pub(crate) async fn unread(&self, runtime: &Runtime, owner: &Principal) -> Unread {
        let published = runtime.hub().published();
        let known = self.listed.lock().unwrap_or_else(PoisonError::into_inner).get(owner).cloned();
        if let Some((then, unread)) = known
            && then == published
        {
            return unread;
        }
        // Only a hint: without an answer there is none.
        let read = runtime.plain_store().run(UnreadResults(owner.clone(), UNREAD_MAX)).await;
        let Ok(unread) = read.map(Arc::new) else { return Arc::default() };
        let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        if listed.len() >= REMEMBERED_MAX {
            listed.clear();
        }
        listed.insert(owner.clone(), (published, Arc::clone(&unread)));
        unread
    }

    /// Reading a result publishes nothing.
    pub(crate) fn forget(&self, owner: &Principal) {
        self.listed.lock().unwrap_or_else(PoisonError::into_inner).remove(owner);
    }

    /// How many of these the client does not know of. They count as sent, and as known when it calls again.
    pub(crate) fn announce(&self, instance: &InstanceId, unread: &[TaskId]) -> usize {
        let mut announced = self.announced.lock().unwrap_or_else(PoisonError::into_inner);
        if unread.is_empty() {
            announced.remove(instance);
            return 0;
        }
        if announced.len() >= REMEMBERED_MAX && !announced.contains_key(instance) {
            announced.clear();
        }
        let of = announced.entry(instance.clone()).or_default();
        // What was read meanwhile is forgotten, so this never holds more than there is unread.
        of.known.retain(|id| unread.contains(id));
        let news: HashSet<TaskId> = unread.iter().filter(|id| !of.known.contains(*id)).cloned().collect();
        let count = news.len();
        of.sent.extend(news);
        count
    }

    /// The client has made another call: what it was sent has arrived.
    pub(crate) fn settle(&self, instance: &InstanceId) {
        let mut announced = self.announced.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(of) = announced.get_mut(instance) {
            let sent = std::mem::take(&mut of.sent);
            of.known.extend(sent);
        }
    }
}
