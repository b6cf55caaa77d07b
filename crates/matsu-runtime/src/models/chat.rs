//! Chats of people with models: which models are addressed, what each of them is shown, and how their answers are kept.
//!
//! A person's message is stored before a model is asked. While models answer, what has arrived is stored as a draft at
//! most every two seconds; when the answer is complete it takes the draft's place in one transaction.

mod answering;
pub mod export;
mod line;
pub mod live;
pub mod mentions;
mod of_run;
mod open_answer;
mod open_chats;
mod own_tools;
mod pictures;
pub mod roster;
mod sources;
mod standing;

pub use answering::{Answered, EventSink};
pub use line::Line;
pub use live::{ChatTools, LiveChats, LiveSettings};
pub use mentions::{Addressed, UnknownMention};
pub use of_run::{WeakChats, is_own_chat};
pub use open_answer::OpenAnswers;
pub use open_chats::{ChatError, OpenChat, OpenChats, Posted};
pub use own_tools::{OwnTools, Workforce};
pub use roster::Roster;
pub use sources::Together;
pub use standing::{StandingApprovals, WithStanding};
