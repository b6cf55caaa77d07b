//! The full screen at work: keys come in, changes come from the daemon, and what a person wants is done by the very
//! commands of this program, on the ordinary screen.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result};
use crossterm::event::{Event, EventStream, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use futures_util::StreamExt;
use matsu_core::clock::Clock;
use matsu_core::limits::LIST_PAGE_MAX;
use matsu_core::task::is_news_in;
use ratatui::DefaultTerminal;
use serde_json::{Value, json};

use super::board::{Board, Key, Wish};
use super::draw::draw;
use crate::cli::Global;
use crate::client::{Client, Events, segment};
use crate::commands::Context;
use crate::process;

/// How often ages are counted anew, and a daemon is looked for while none answers.
const TICK: Duration = Duration::from_secs(1);

/// A task that cannot be cancelled is refused within this time.
const REFUSED_WITHIN: Duration = Duration::from_millis(500);

/// Rows that PgUp and PgDn go.
const PAGE: usize = 10;

pub async fn run(cx: &Context, global: &Global, folder: Option<String>) -> Result<ExitCode> {
    // A Ctrl-C is a key here, and in a command that is run from here it is that command's.
    let _interrupts = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt())?;
    let mut screen = Screen { cx, global, folder, board: Board::short(), stream: None };
    // It also puts the terminal back if this panics.
    let mut terminal = ratatui::try_init().context("the terminal cannot show a full screen")?;
    let watched = screen.watch(&mut terminal).await;
    ratatui::restore();
    watched.map(|()| ExitCode::SUCCESS)
}

struct Screen<'a> {
    cx: &'a Context,
    global: &'a Global,
    folder: Option<String>,
    board: Board,
    /// Absent while no daemon answers.
    stream: Option<(Client, Events)>,
}

impl Screen<'_> {
    async fn watch(&mut self, terminal: &mut DefaultTerminal) -> Result<()> {
        let (mut keys, clock) = (EventStream::new(), Clock::system());
        loop {
            if self.stream.is_none() {
                self.connect().await;
            }
            let has_colours = console::colors_enabled();
            terminal.draw(|frame| draw(frame, &self.board, clock.now(), has_colours))?;
            let wish = tokio::select! {
                key = keys.next() => match key {
                    Some(Ok(Event::Key(key))) => self.press(key),
                    Some(Ok(_)) => Wish::Nothing,
                    // The terminal is gone.
                    Some(Err(_)) | None => Wish::Quit,
                },
                event = next(&mut self.stream) => {
                    self.take(event).await;
                    Wish::Nothing
                }
                () = clock.sleep(TICK) => Wish::Nothing,
            };
            match wish {
                Wish::Nothing => {}
                Wish::Quit => return Ok(()),
                Wish::Cancel(task) => self.cancel(&task).await,
                Wish::Run(words) => {
                    // Only one reads the keyboard at a time.
                    drop(keys);
                    ratatui::restore();
                    self.run(&words);
                    // The stream that was dropped leaves a wake-up behind. If the next look found it together with a
                    // first key, that key would not be seen until another one is typed.
                    let _ = crossterm::event::poll(Duration::ZERO);
                    *terminal = ratatui::try_init()?;
                    keys = EventStream::new();
                    self.reload().await;
                }
            }
        }
    }

    fn press(&mut self, key: KeyEvent) -> Wish {
        if key.kind == KeyEventKind::Release {
            return Wish::Nothing;
        }
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        let meant = match key.code {
            KeyCode::Char('c') if is_control => return Wish::Quit,
            KeyCode::Up | KeyCode::Char('k') => Key::Up(1),
            KeyCode::Down | KeyCode::Char('j') => Key::Down(1),
            KeyCode::PageUp => Key::Up(PAGE),
            KeyCode::PageDown => Key::Down(PAGE),
            KeyCode::Home | KeyCode::Char('g') => Key::First,
            KeyCode::End | KeyCode::Char('G') => Key::Last,
            KeyCode::Enter => Key::Enter,
            KeyCode::Esc => Key::Escape,
            KeyCode::Char(letter) if !is_control => Key::Letter(letter),
            _ => return Wish::Nothing,
        };
        self.board.press(meant)
    }

    async fn connect(&mut self) {
        let opened = async {
            let client = Client::daemon(&self.cx.config).await?;
            // Before the list is read, so that nothing falls between.
            let events = client.events("/api/v1/events").await?;
            anyhow::Ok((client, events))
        };
        match opened.await {
            Ok(stream) => {
                self.board.message = None;
                self.stream = Some(stream);
                self.reload().await;
            }
            Err(error) => self.board.message = Some(format!("{error:#}; it continues as soon as a daemon answers")),
        }
    }

    async fn reload(&mut self) {
        let Some((client, _)) = &self.stream else { return };
        match client.get(&format!("/api/v1/tasks?limit={LIST_PAGE_MAX}")).await {
            Ok(page) => {
                let all = page["items"].as_array().cloned().unwrap_or_default();
                self.board.replace(all.into_iter().filter(|task| self.is_wanted(task)).collect());
            }
            Err(error) => self.lost(&error),
        }
    }

    async fn take(&mut self, event: Result<Option<(String, Value)>>) {
        match event {
            Ok(Some((name, task))) if name == "task" && self.is_wanted(&task) => self.board.put(task),
            // Events were missed: the list has what they were about.
            Ok(Some((name, _))) if name == "reset" => self.reload().await,
            Ok(Some(_)) => {}
            Ok(None) => self.lost(&anyhow::anyhow!("the daemon has ended")),
            Err(error) => self.lost(&error),
        }
    }

    fn is_wanted(&self, task: &Value) -> bool {
        is_news_in(task["started_in"].as_str(), self.folder.as_deref())
    }

    fn lost(&mut self, error: &anyhow::Error) {
        self.board.message = Some(format!("{error:#}; it continues as soon as a daemon answers"));
        self.stream = None;
    }

    async fn cancel(&mut self, task: &str) {
        let Some((client, _)) = &self.stream else { return };
        let path = format!("/api/v1/tasks/{}", segment(task));
        // The wish is stored at once and answered when the task has ended, which the list shows by itself.
        let cancelled = client.patch(&path, json!({ "status": "cancelled" }));
        let refused = Clock::system().within(REFUSED_WITHIN, cancelled).await.and_then(Result::err);
        self.board.message = refused.map(|error| format!("{error:#}"));
    }

    /// A command of this program on the ordinary screen, until a key brings the list back.
    fn run(&mut self, words: &[String]) {
        let ran = process::run_here(&self.cx.config, self.global, words);
        if let Err(error) = ran {
            self.board.message = Some(format!("{error:#}"));
            return;
        }
        eprint!("\nEnter: back to the list ");
        let _ = std::io::stdin().read_line(&mut String::new());
    }
}

/// The next event; never, while there is no stream.
async fn next(stream: &mut Option<(Client, Events)>) -> Result<Option<(String, Value)>> {
    match stream {
        Some((_, events)) => events.next().await,
        None => std::future::pending().await,
    }
}
