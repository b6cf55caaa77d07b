//! What one call hands to its caller, so that it can be taken back if the reply is lost on the way.

use std::sync::{Mutex, PoisonError};

use matsu_core::id::{NotificationId, SessionId};
use matsu_core::ports::store::{TakeBackMessages, TakeBackNotifications};

use crate::runtime::Runtime;

/// What a reply carries that counts as given.
#[derive(Debug, Default)]
pub struct Delivery {
    handed: Mutex<Vec<Handed>>,
}

#[derive(Debug)]
enum Handed {
    Messages { session: SessionId, handed_to: String },
    Notifications { session: SessionId, ids: Vec<NotificationId> },
}

impl Delivery {
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
