//! What one call hands to its caller, so that it can be taken back if the reply is lost on the way.

use std::sync::{Mutex, MutexGuard, PoisonError};

use matsu_core::clock::Timestamp;
use matsu_core::id::{NotificationId, SessionId, TaskId};
use matsu_core::ports::store::{TakeBackMessages, TakeBackNotifications};
use matsu_core::principal::Principal;
use matsu_core::task::Task;

use crate::runtime::Runtime;
use crate::tasks::Tasks;

/// What a reply carries that counts as given.
#[derive(Debug, Default)]
pub struct Delivery {
    handed: Mutex<Vec<Handed>>,
    read: Read,
    /// Results that do not count as read yet.
    shown: Mutex<Vec<Shown>>,
}

/// The owner of a result that a reply shows, and the task.
pub type Shown = (Principal, TaskId);

/// When the results in a reply count as read.
#[derive(Debug, Default, PartialEq, Eq)]
enum Read {
    /// The caller is this very process.
    #[default]
    AtOnce,
    /// With the reply: [`Delivery::sent`].
    WhenSent,
    /// When the client of this principal says that the reply has arrived. Results of others: with the reply.
    WhenAcknowledged(Principal),
}

#[derive(Debug)]
enum Handed {
    Messages { session: SessionId, handed_to: String },
    Notifications { session: SessionId, ids: Vec<NotificationId> },
    Result { owner: Principal, id: TaskId, read_at: Timestamp },
}

impl Delivery {
    /// To a client of which nothing is known but its connection.
    #[must_use]
    pub fn by_connection() -> Self {
        Self { read: Read::WhenSent, ..Self::default() }
    }

    /// To a client that acknowledges what it was sent.
    #[must_use]
    pub fn acknowledged_by(client: Principal) -> Self {
        Self { read: Read::WhenAcknowledged(client), ..Self::default() }
    }

    /// Of an answer that goes out once more, over another connection.
    #[must_use]
    pub fn again(shown: Vec<Shown>) -> Self {
        Self { read: Read::WhenSent, shown: Mutex::new(shown), ..Self::default() }
    }

    /// The results that the reply shows, before it is sent.
    #[must_use]
    pub fn shown(&self) -> Vec<Shown> {
        self.lock_shown().clone()
    }

    /// The reply shows these tasks to their owner.
    pub(crate) async fn results(&self, runtime: &Runtime, owner: &Principal, shown: &[&Task]) {
        let ids = Tasks::unread(owner, shown);
        self.lock_shown().extend(ids.into_iter().map(|id| (owner.clone(), id)));
        if self.read == Read::AtOnce {
            self.sent(runtime).await;
        }
    }

    /// The reply is on its way. A store that cannot be written now must not turn a good answer into an error: what could
    /// not be noted counts as unread.
    pub async fn sent(&self, runtime: &Runtime) {
        let is_later = |owner: &Principal| matches!(&self.read, Read::WhenAcknowledged(client) if client == owner);
        let now: Vec<Shown> = self.lock_shown().extract_if(.., |(owner, _)| !is_later(owner)).collect();
        for (owner, id) in now {
            match Tasks::of(runtime).mark_read(&owner, std::slice::from_ref(&id)).await {
                Ok(read_at) => self.note(Handed::Result { owner, id, read_at }),
                Err(error) => tracing::debug!(%error, "could not store that results were read"),
            }
        }
    }

    /// What the client acknowledges when it has this reply.
    #[must_use]
    pub fn unacknowledged(&self) -> Vec<TaskId> {
        self.lock_shown().iter().map(|(_, id)| id.clone()).collect()
    }

    pub fn messages(&self, session: &SessionId, handed_to: &str) {
        self.note(Handed::Messages { session: session.clone(), handed_to: handed_to.to_owned() });
    }

    pub fn notifications(&self, session: &SessionId, ids: Vec<NotificationId>) {
        self.note(Handed::Notifications { session: session.clone(), ids });
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.handed.lock().unwrap_or_else(PoisonError::into_inner).is_empty() && self.lock_shown().is_empty()
    }

    fn lock_shown(&self) -> MutexGuard<'_, Vec<Shown>> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The reply did not arrive: the call delivered nothing. What cannot be taken back now is at worst acknowledged by
    /// a caller that sends a message without naming what it answers.
    pub async fn take_back(&self, runtime: &Runtime) {
        self.lock_shown().clear();
        let handed = std::mem::take(&mut *self.handed.lock().unwrap_or_else(PoisonError::into_inner));
        for what in handed {
            let taken = match &what {
                Handed::Messages { session, handed_to } => {
                    runtime
                        .plain_store()
                        .run(TakeBackMessages { session: session.clone(), handed_to: handed_to.to_owned() })
                        .await
                }
                Handed::Notifications { session, ids } => {
                    runtime
                        .plain_store()
                        .run(TakeBackNotifications { session: session.clone(), ids: ids.to_vec() })
                        .await
                }
                Handed::Result { owner, id, read_at } => {
                    Tasks::of(runtime).take_back_read(owner, vec![id.clone()], *read_at).await
                }
            };
            if let Err(error) = taken {
                tracing::warn!(%error, "content of a lost reply could not be marked as undelivered");
            }
        }
    }

    fn note(&self, what: Handed) {
        self.handed.lock().unwrap_or_else(PoisonError::into_inner).push(what);
    }
}
