//! The calls that wait for the next action of a session, in this process. Of several waiters the newest gets what
//! comes, and the others are answered that they were superseded.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use matsu_core::id::SessionId;

#[derive(Debug, Default)]
pub struct Waiters {
    sessions: Mutex<Sessions>,
}

#[derive(Debug, Default)]
struct Sessions {
    /// By ticket: a greater one came later.
    waiting: HashMap<SessionId, BTreeMap<u64, WaiterState>>,
    next_ticket: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WaiterState {
    Waiting,
    Superseded,
}

/// A place among the waiters of one session; leaving is dropping it.
#[derive(Debug)]
pub struct Ticket {
    waiters: Arc<Waiters>,
    session: SessionId,
    number: u64,
}

impl Waiters {
    pub fn enter(self: &Arc<Self>, session: &SessionId) -> Ticket {
        let mut sessions = self.lock();
        sessions.next_ticket += 1;
        let number = sessions.next_ticket;
        sessions.waiting.entry(session.clone()).or_default().insert(number, WaiterState::Waiting);
        drop(sessions);
        Ticket { waiters: Arc::clone(self), session: session.clone(), number }
    }

    /// Whether a call waits for this session in this process.
    pub fn any(&self, session: &SessionId) -> bool {
        self.lock().waiting.contains_key(session)
    }

    fn lock(&self) -> MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ticket {
    /// Something has come. `true`: it is ours, and every other waiter of now is superseded. `false`: a newer waiter is
    /// there, or was when it came.
    pub fn take(&self) -> bool {
        let mut sessions = self.waiters.lock();
        let Some(waiting) = sessions.waiting.get_mut(&self.session) else { return true };
        let is_newest = waiting.last_key_value().is_some_and(|(newest, _)| *newest == self.number);
        if !is_newest || waiting.get(&self.number) == Some(&WaiterState::Superseded) {
            return false;
        }
        waiting.range_mut(..self.number).for_each(|(_, state)| *state = WaiterState::Superseded);
        true
    }

    /// Another waiter got what came while we waited.
    pub fn is_superseded(&self) -> bool {
        let sessions = self.waiters.lock();
        let state = sessions.waiting.get(&self.session).and_then(|waiting| waiting.get(&self.number));
        state == Some(&WaiterState::Superseded)
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut sessions = self.waiters.lock();
        if let Some(waiting) = sessions.waiting.get_mut(&self.session) {
            waiting.remove(&self.number);
            if waiting.is_empty() {
                sessions.waiting.remove(&self.session);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_takes_and_the_others_know() {
        let waiters = Arc::new(Waiters::default());
        let session = SessionId::from_text("sess_1");
        let (first, second) = (waiters.enter(&session), waiters.enter(&session));
        assert!(!first.take(), "a newer one is there");
        assert!(second.take());
        drop(second);
        assert!(first.is_superseded(), "what came was not for it, though it is the newest now");
        assert!(!first.take());
        drop(first);
        assert!(!waiters.any(&session), "nothing is left behind");
        assert!(waiters.enter(&session).take());
    }
}
