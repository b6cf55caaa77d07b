//! Which replies the client has taken. What was written is in a pipe until the client reads it, and a client that is
//! stopped or killed may never do so.

use std::collections::VecDeque;
use std::time::Duration;

use matsu_core::clock::Clock;
use matsu_server::mcp::acknowledgement;

use crate::stdio;

/// How often the pipe is looked at, at first and at last: most clients read at once.
const LOOK_FIRST: Duration = Duration::from_millis(2);
const LOOK_LAST: Duration = Duration::from_millis(250);

/// Replies that are remembered; the results of older ones count as unread.
const REPLIES_MAX: usize = 256;

/// A reply that shows results, and where it ends in all that was written.
struct Carrying {
    ends_at: u64,
    task_ids: Vec<String>,
}

pub struct Receipts {
    written: u64,
    replies: VecDeque<Carrying>,
    pause: Duration,
}

impl Receipts {
    pub fn new() -> Self {
        Self { written: 0, replies: VecDeque::new(), pause: LOOK_FIRST }
    }

    /// A line was written to the client.
    pub fn wrote(&mut self, bytes: usize, task_ids: Vec<String>) {
        self.written += bytes as u64;
        if task_ids.is_empty() {
            return;
        }
        if self.replies.len() >= REPLIES_MAX {
            self.replies.pop_front();
        }
        self.replies.push_back(Carrying { ends_at: self.written, task_ids });
        self.pause = LOOK_FIRST;
    }

    pub fn is_empty(&self) -> bool {
        self.replies.is_empty()
    }

    /// The frames that acknowledge what the client has taken by now.
    pub fn taken(&mut self) -> Vec<String> {
        self.taken_with(stdio::unread())
    }

    fn taken_with(&mut self, unread: u64) -> Vec<String> {
        let read = self.written.saturating_sub(unread);
        let count = self.replies.iter().take_while(|reply| reply.ends_at <= read).count();
        self.replies.drain(..count).map(|reply| acknowledgement::frame(&reply.task_ids)).collect()
    }

    /// Returns when it is time to look again.
    pub async fn look_again(&mut self) {
        Clock::system().sleep(self.pause).await;
        self.pause = (self.pause * 2).min(LOOK_LAST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_acknowledged_when_all_of_it_was_taken() {
        let mut receipts = Receipts::new();
        receipts.wrote(100, vec!["task_1".to_owned()]);
        receipts.wrote(10, Vec::new());
        receipts.wrote(50, vec!["task_2".to_owned()]);
        assert_eq!(receipts.taken_with(61), Vec::<String>::new());
        assert_eq!(receipts.taken_with(60), [acknowledgement::frame(&["task_1".to_owned()])]);
        assert_eq!(receipts.taken_with(1), Vec::<String>::new());
        assert_eq!(receipts.taken_with(0), [acknowledgement::frame(&["task_2".to_owned()])]);
        assert!(receipts.is_empty());
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut receipts = Receipts::new();
        for _ in 0..=REPLIES_MAX {
            receipts.wrote(1, vec!["task".to_owned()]);
        }
        assert_eq!(receipts.taken_with(0).len(), REPLIES_MAX);
    }
}
