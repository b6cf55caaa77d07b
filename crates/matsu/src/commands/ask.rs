//! Questions on the terminal. Each has a default answer, which an empty line or `--yes` takes.

use std::io::{BufRead, IsTerminal, Write};

use anyhow::{Result, bail};

/// How questions are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// On the terminal, by a person.
    Person,
    /// By their defaults, without asking.
    Defaults,
}

impl Ask {
    /// # Errors
    /// Without `--yes`, stdin must be a terminal.
    pub fn new(takes_defaults: bool) -> Result<Self> {
        if takes_defaults {
            return Ok(Self::Defaults);
        }
        if !std::io::stdin().is_terminal() {
            bail!("stdin is not a terminal, so no question can be answered; pass --yes to take the default answers");
        }
        Ok(Self::Person)
    }

    pub fn yes_or_no(self, question: &str, default: bool) -> Result<bool> {
        let hint = if default { "[Y/n]" } else { "[y/N]" };
        loop {
            match self.line(&format!("{question} {hint} "))?.to_lowercase().as_str() {
                "" => return Ok(default),
                "y" | "yes" => return Ok(true),
                "n" | "no" => return Ok(false),
                other => say!("{other:?} is no answer to this question; type y or n"),
            }
        }
    }

    /// What was typed, without the spaces around it; empty by default.
    pub fn line(self, question: &str) -> Result<String> {
        if self == Self::Defaults {
            return Ok(String::new());
        }
        print!("{question}");
        std::io::stdout().flush()?;
        let mut answer = String::new();
        if std::io::stdin().lock().read_line(&mut answer)? == 0 {
            bail!("stdin ended before the question was answered; nothing was changed");
        }
        Ok(answer.trim().to_owned())
    }
}
