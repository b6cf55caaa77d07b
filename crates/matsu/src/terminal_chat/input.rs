//! Lines from the person: with editing and history in a terminal, plain otherwise. One thread reads, and only on
//! request, one line at a time.

use std::io::{BufRead, IsTerminal};
use std::path::PathBuf;

use anyhow::Result;
use tokio::sync::{mpsc, oneshot};

/// What came of asking for a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    Text(String),
    /// Ctrl-C at the prompt.
    Interrupted,
    /// Nothing will come any more.
    End,
}

struct Wish {
    prompt: String,
    answer: oneshot::Sender<Line>,
}

#[derive(Clone)]
pub struct Input {
    wishes: mpsc::UnboundedSender<Wish>,
    pub is_terminal: bool,
}

impl Input {
    /// The history of lines is kept in that file.
    pub fn start(history: PathBuf) -> Result<Self> {
        let (wishes, mut asked) = mpsc::unbounded_channel::<Wish>();
        let is_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
        let mut reader = Reader::new(is_terminal, history)?;
        std::thread::Builder::new().name("input".to_owned()).spawn(move || {
            while let Some(wish) = asked.blocking_recv() {
                let line = reader.read(&wish.prompt);
                let ended = line == Line::End;
                // The caller no longer waits: the line goes to the next one that asks.
                if let Err(line) = wish.answer.send(line)
                    && let Some(next) = asked.blocking_recv()
                {
                    let _ = next.answer.send(line);
                }
                if ended {
                    break;
                }
            }
        })?;
        Ok(Self { wishes, is_terminal })
    }

    pub async fn line(&self, prompt: &str) -> Line {
        let (answer, line) = oneshot::channel();
        if self.wishes.send(Wish { prompt: prompt.to_owned(), answer }).is_err() {
            return Line::End;
        }
        line.await.unwrap_or(Line::End)
    }

    /// A question with yes or no; no if the input has ended.
    pub async fn confirm(&self, question: &str) -> bool {
        match self.line(&format!("{question} [y/N] ")).await {
            Line::Text(text) => matches!(text.trim().to_lowercase().as_str(), "y" | "yes"),
            Line::Interrupted | Line::End => false,
        }
    }
}

enum Reader {
    Editor { editor: Box<rustyline::DefaultEditor>, history: PathBuf },
    Plain,
}

impl Reader {
    fn new(is_terminal: bool, history: PathBuf) -> Result<Self> {
        if !is_terminal {
            return Ok(Self::Plain);
        }
        let mut editor = Box::new(rustyline::DefaultEditor::new()?);
        let _ = editor.load_history(&history);
        Ok(Self::Editor { editor, history })
    }

    fn read(&mut self, prompt: &str) -> Line {
        match self {
            Self::Editor { editor, history } => match editor.readline(prompt) {
                Ok(line) => {
                    let _ = editor.add_history_entry(&line);
                    let _ = editor.append_history(history);
                    Line::Text(line)
                }
                Err(rustyline::error::ReadlineError::Interrupted) => Line::Interrupted,
                Err(_) => Line::End,
            },
            Self::Plain => {
                let mut line = String::new();
                match std::io::stdin().lock().read_line(&mut line) {
                    Ok(0) | Err(_) => Line::End,
                    Ok(_) => Line::Text(line.trim_end_matches(['\n', '\r']).to_owned()),
                }
            }
        }
    }
}
