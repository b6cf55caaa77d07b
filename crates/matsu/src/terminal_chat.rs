//! A chat in the terminal: reads lines, shows answers as they come, and obeys commands.

/// A line on stdout, for a reader that may be gone.
macro_rules! show {
    ($($words:tt)*) => {
        $crate::terminal_chat::line(format_args!($($words)*))
    };
}

pub mod approval;
pub mod attach;
mod clipboard;
mod commands;
mod input;
pub mod opening;
pub mod session;
mod stage;

pub use input::Input;

pub use session::TerminalChat;

use std::io::Write;

fn line(words: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stdout(), "{words}");
}
