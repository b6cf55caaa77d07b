//! Tasks in the terminal: following them, showing how they ended, and asking what they ask.

/// A line on stdout, for a reader that may be gone.
macro_rules! show {
    ($($words:tt)*) => {
        $crate::terminal::line(format_args!($($words)*))
    };
}

pub mod checks;
pub mod ending;
pub mod follow;
pub mod model_question;
pub mod next_step;
pub mod prompt;
pub mod question;
pub mod table;

pub use matsu_core::plain_text;

use std::io::Write;

fn line(words: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stdout(), "{words}");
}
