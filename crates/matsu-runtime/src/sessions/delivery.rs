//! What one call hands to its caller, so that it can be taken back if the reply is lost on the way.

use std::sync::{Mutex, PoisonError};

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
    /// Whose client says when a reply has arrived. Results of others count as read as soon as they are sent.
    acknowledged_by: Option<Principal>,
    /// Results that count as read when the reply is acknowledged.
    unacknowledged: Mutex<Vec<TaskId>>,
}

#[derive(Debug)]
enum Handed {
    Messages { session: SessionId, handed_to: String },
    Notifications { session: SessionId, ids: Vec<NotificationId> },
    Results { owner: Principal, ids: Vec<TaskId>, read_at: Timestamp },
}

impl Delivery {
    /// To a client that acknowledges what it was sent.
    #[must_use]
    pub fn acknowledged_by(client: Principal) -> Self {
        Self { acknowledged_by: Some(client), ..Self::default() }
    }

    /// The reply shows these tasks to their owner. A store that cannot be written now must not turn a good answer into
    /// an error: what could not be noted counts as unread.
    pub(crate) async fn results(&self, runtime: &Runtime, owner: &Principal, shown: &[&Task]) {
        let ids = Tasks::unread(owner, shown);
        if ids.is_empty() {
            return;
        }
        if self.acknowledged_by.as_ref() == Some(owner) {
            self.unacknowledged.lock().unwrap_or_else(PoisonError::into_inner).extend(ids);
            return;
        }
        match Tasks::of(runtime).mark_read(owner, &ids).await {
            Ok(read_at) => self.note(Handed::Results { owner: owner.clone(), ids, read_at }),
            Err(error) => tracing::debug!(%error, "reading of results could not be stored"),
        }
    }

    /// What the client acknowledges when it has this reply.
    #[must_use]
    pub fn unacknowledged(&self) -> Vec<TaskId> {
        self.unacknowledged.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn messages(&self, session: &SessionId, handed_to: &str) {
        self.note(Handed::Messages { session: session.clone(), handed_to: handed_to.to_owned() });
    }

    pub fn notifications(&self, session: &SessionId, ids: Vec<NotificationId>) {
        self.note(Handed::Notifications { session: session.clone(), ids });
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.handed.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// The reply did not arrive: the call delivered nothing. What cannot be taken back now is at worst acknowledged by
    /// a caller that sends a message without naming what it answers.
    pub async fn take_back(&self, runtime: &Runtime) {
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
                Handed::Results { owner, ids, read_at } => {
                    Tasks::of(runtime).take_back_read(owner, ids.clone(), *read_at).await
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
