//! A run whose words carry no secret: every event of it passes here before any other code sees it.

use std::path::PathBuf;

use async_trait::async_trait;

use matsu_core::ports::agent::{LiveRun, RunEnd, RunEvent, Verdict};
use matsu_core::redaction::{self, Remembered, Stream};
use matsu_core::run::{Answer, RunInput};
use matsu_core::secret::Token;

pub struct Redacted {
    inner: Box<dyn LiveRun>,
    output: Stream,
    /// Comes after what was held back of the output.
    next: Option<RunEvent>,
    /// What was returned reaches up to here. What is held back is not counted: it is plain text as it was printed.
    position: u64,
    /// What this run was given; of everything else the whole process knows.
    _given: Vec<Remembered>,
}

impl Redacted {
    pub fn new(inner: Box<dyn LiveRun>, token: &Token, input: &RunInput) -> Self {
        let mut given = vec![redaction::remember_while("run token", token.reveal())];
        let secrets = input.env.iter().filter_map(|(name, value)| Some((name, redaction::secret_in(name, value)?)));
        given.extend(secrets.map(|(name, secret)| redaction::remember_while(name, secret)));
        Self { inner, output: Stream::default(), next: None, position: 0, _given: given }
    }

    fn ended(end: RunEnd) -> RunEnd {
        let verdict = match end.verdict {
            Verdict::Success => Verdict::Success,
            Verdict::Quota { until, message } => Verdict::Quota { until, message: redaction::redact_cut(&message) },
            Verdict::Failure { code, message, retryable } => {
                Verdict::Failure { code, message: redaction::redact_cut(&message), retryable }
            }
        };
        RunEnd {
            verdict,
            stdout_tail: redaction::redact_cut(&end.stdout_tail),
            stderr_tail: redaction::redact_cut(&end.stderr_tail),
            ..end
        }
    }
}

fn whole(text: &str) -> String {
    redaction::redact(text).into_owned()
}

#[async_trait]
impl LiveRun for Redacted {
    async fn next(&mut self) -> RunEvent {
        if let Some(event) = self.next.take() {
            self.position = self.inner.position();
            return event;
        }
        loop {
            let event = match self.inner.next().await {
                RunEvent::Output(text) => match self.output.push(&text) {
                    shown if shown.is_empty() && !text.is_empty() => continue,
                    shown => {
                        self.position = self.inner.position().saturating_sub(self.output.held() as u64);
                        return RunEvent::Output(shown);
                    }
                },
                RunEvent::Log(line) => RunEvent::Log(whole(&line)),
                RunEvent::Question(mut question) => {
                    question.text = whole(&question.text);
                    RunEvent::Question(question)
                }
                RunEvent::Ended(end) => RunEvent::Ended(Box::new(Self::ended(*end))),
                event @ (RunEvent::Session(_) | RunEvent::Usage(_)) => return event,
                RunEvent::Passed => RunEvent::Passed,
            };
            let held = self.output.finish();
            if held.is_empty() {
                self.position = self.inner.position();
                return event;
            }
            self.next = Some(event);
            return RunEvent::Output(held);
        }
    }

    fn end(&mut self) {
        self.inner.end();
    }

    async fn answer(&mut self, answer: &Answer) {
        self.inner.answer(answer).await;
    }

    fn place(&self) -> Option<String> {
        self.inner.place()
    }

    fn directory(&self) -> Option<PathBuf> {
        self.inner.directory()
    }

    fn position(&self) -> u64 {
        self.position
    }

    fn stored(&mut self, position: u64) {
        self.inner.stored(position);
    }

    fn set_parked(&mut self, is_parked: bool) {
        self.inner.set_parked(is_parked);
    }

    fn ran_seconds(&self) -> u32 {
        self.inner.ran_seconds()
    }
}
