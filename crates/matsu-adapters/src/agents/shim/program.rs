//! The program of a run as its shim sees it: a child, or sealed behind two processes of the set-up.

use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::process::ExitStatusExt;

use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::pipe::Sender;
use tokio::process::Child;

use super::order::Order;
use super::tree::Process;
use crate::agents::process;
use crate::agents::sandbox::Sandbox;
use crate::agents::sandbox::step::{ConfinementStep, StepOrder, StepReport};

/// How a program ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exit {
    pub code: Option<i32>,
    pub signal: Option<i32>,
}

pub struct Program {
    child: Child,
    /// Set for a sealed program: what the first process of its namespace reports.
    reports: Option<Lines<BufReader<UnixStream>>>,
    input: Option<Sender>,
}

impl Program {
    /// Starts the program of an order, confined as it says. The first process of a sealed run holds the lock too.
    ///
    /// # Errors
    /// Nothing runs.
    pub async fn start(order: &Order, lock: Option<BorrowedFd<'_>>) -> io::Result<Self> {
        let (stdin, input) = process::input(&order.stdin)?;
        let input = input.map(Sender::from_owned_fd).transpose()?;
        let step = match &order.sandbox {
            Sandbox::Open => {
                return Ok(Self { child: process::start_program(order, stdin)?, reports: None, input });
            }
            Sandbox::Sealed(view) => ConfinementStep::Seal(view.network),
            Sandbox::Fenced(_) => ConfinementStep::Fence,
        };
        let (child, socket) = process::start_step(step)?;
        // A fenced step becomes the program, which gets nothing but its input.
        let lock = lock.filter(|_| matches!(step, ConfinementStep::Seal(_)));
        StepOrder::of(order).send(&socket, &stdin, lock)?;
        drop(stdin);
        socket.set_nonblocking(true)?;
        let mut reports = BufReader::new(UnixStream::from_std(socket)?).lines();
        match (step, next_report(&mut reports).await?) {
            (ConfinementStep::Seal(_), Some(StepReport::Started)) => Ok(Self { child, reports: Some(reports), input }),
            // The program has taken the place of the step, which closed the socket.
            (ConfinementStep::Fence, None) => Ok(Self { child, reports: None, input }),
            (_, Some(StepReport::Failed { error })) => Err(io::Error::other(error)),
            _ => Err(io::Error::other("the set-up of its confinement ended early")),
        }
    }

    /// The process that this one started; it is awaited here and must not be collected elsewhere.
    pub fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Processes that belong to the set-up of a sealed run and not to the run.
    pub fn set_up(&self, all: &[Process]) -> Vec<i32> {
        let first = self.child.id().filter(|_| self.reports.is_some()).and_then(|id| i32::try_from(id).ok());
        let Some(first) = first else { return Vec::new() };
        let below = all.iter().filter(|process| process.parent == first).map(|process| process.pid);
        below.chain([first]).collect()
    }

    /// Until the program has ended. Other processes of the run may be left. May be dropped and asked again.
    pub async fn ended(&mut self) -> Exit {
        let Some(reports) = &mut self.reports else {
            let status = self.child.wait().await.ok();
            return Exit {
                code: status.and_then(|status| status.code()),
                signal: status.and_then(|status| status.signal()),
            };
        };
        match next_report(reports).await {
            Ok(Some(StepReport::Exited { code, signal })) => Exit { code, signal },
            // The first process is gone, and with it every other.
            _ => Exit { code: None, signal: Some(9) },
        }
    }

    /// What the program reads from, where that is a pipe.
    pub fn take_input(&mut self) -> Option<Sender> {
        self.input.take()
    }
}

async fn next_report(reports: &mut Lines<BufReader<UnixStream>>) -> io::Result<Option<StepReport>> {
    match reports.next_line().await? {
        Some(line) => serde_json::from_str(&line).map(Some).map_err(io::Error::other),
        None => Ok(None),
    }
}
