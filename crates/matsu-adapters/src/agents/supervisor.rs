//! The supervisor of a run, `matsu __supervise FOLDER`: the parent of everything that the run starts. It belongs to no
//! daemon: a daemon that ends leaves it at work, and the next one goes on where that one stopped reading.
//!
//! It is a child subreaper in a session of its own, so no descendant can leave it. It writes both streams of the
//! program to a spool, passes on what comes over the run's socket, and records how the run ended, in a file that
//! appears when every process is gone. A daemon follows over the control socket. The lock of the run, which this process
//! inherits locked, is free when it has ended; the first process of a sealed run holds it too, and ends with it.

mod control;
pub mod exit_record;
pub mod order;
mod output;
mod silence;

use std::fs::File;
use std::future::Future;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::pin::Pin;
use std::process::ExitCode;
use std::time::Duration;

use matsu_core::clock::Clock;
use matsu_core::limits::TICK;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe::Sender;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Instant;

use super::process;
use super::runs_folder::{RunFolder, write_private};
use super::sandbox::state;
use super::shim::ending;
use super::shim::order::Report;
use super::shim::program::{Exit, Program};
use super::shim::{socket, tree};
use control::{Control, ControlEvent};
use exit_record::ExitRecord;
use order::{Notice, Restart, Supervision, Word};
use output::Output;
use silence::Silence;

/// After the last process is gone its streams end by themselves, unless it gave them to a process outside.
const STREAMS_END_WITHIN: Duration = Duration::from_secs(2);

/// Without a daemon for this many seconds, the supervisor starts one.
const ALONE_TICKS_MAX: u32 = 10;

/// What `matsu __supervise` does.
#[must_use]
pub fn run(folder: &Path) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let folder = RunFolder::at(folder);
    match runtime.and_then(|runtime| runtime.block_on(supervise(&folder))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

async fn supervise(folder: &RunFolder) -> io::Result<()> {
    // Stdout is the lock; it is held until this process ends. Stdin is the connection to the daemon that starts it.
    let lock = io::stdout().as_fd().try_clone_to_owned()?;
    let order: Supervision =
        serde_json::from_str(&std::fs::read_to_string(folder.order())?).map_err(io::Error::other)?;
    let terminate = signal(SignalKind::terminate())?;
    // Fails only in a process that leads a session already.
    let _ = rustix::process::setsid();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let control = Control::open(folder, &order)?;
    let mut supervisor = Supervisor::start(folder, order, control, (terminate, &lock)).await?;
    supervisor.until_the_end().await
}

/// The end of all processes, on its way.
type Ending = Pin<Box<dyn Future<Output = Report>>>;

struct Supervisor<'a> {
    folder: &'a RunFolder,
    order: Supervision,
    control: Control,
    terminate: Signal,
    clock: Clock,
    output: Output,
    /// Absent once it is being ended.
    program: Option<Program>,
    /// Its process, which must not be collected by anything but `program`.
    process: Option<u32>,
    input: Option<Sender>,
    unwritten: Vec<u8>,
    ending: Option<Ending>,
    /// A person is asked; the program's time stands still.
    is_parked: bool,
    timed_out: bool,
    silence: Silence,
    /// It was ended because it printed nothing for so long.
    stalled: Option<u32>,
    /// Ticks since a daemon was last connected.
    alone_ticks: u32,
}

impl<'a> Supervisor<'a> {
    /// Starts the program; if that fails, the record of the run says why.
    async fn start(
        folder: &'a RunFolder,
        order: Supervision,
        mut control: Control,
        (terminate, lock): (Signal, &OwnedFd),
    ) -> io::Result<Supervisor<'a>> {
        let started = begin(folder, &order, lock).await;
        let (mut program, output) = match started {
            Ok(started) => started,
            Err(error) => {
                let record = ExitRecord { error: Some(error.to_string()), ..ExitRecord::default() };
                record.write(folder)?;
                control.send(&Notice::Ended).await;
                return Err(error);
            }
        };
        control.send(&Notice::Started).await;
        let (process, input) = (program.id(), program.take_input());
        let unwritten = order.first_input.clone().unwrap_or_default().into_bytes();
        Ok(Self {
            folder,
            order,
            control,
            terminate,
            clock: Clock::system(),
            output,
            program: Some(program),
            process,
            input,
            unwritten,
            ending: None,
            is_parked: false,
            timed_out: false,
            silence: Silence::default(),
            stalled: None,
            alone_ticks: 0,
        })
    }

    async fn until_the_end(&mut self) -> io::Result<()> {
        let mut tick_at = self.clock.instant() + TICK;
        let report = loop {
            tokio::select! {
                report = ended(&mut self.ending) => break report,
                exit = exited(&mut self.program) => self.end(Some(exit)),
                event = self.control.next() => self.on_event(event),
                _ = self.terminate.recv() => self.end(None),
                () = self.output.step() => self.control.grew(self.output.ends()),
                written = write_some(&mut self.input, &self.unwritten), if !self.unwritten.is_empty() => match written {
                    Ok(bytes) => drop(self.unwritten.drain(..bytes)),
                    // The program does not read any more; its end will show whether that is an error.
                    Err(_) => {
                        self.input = None;
                        self.unwritten.clear();
                    }
                },
                () = self.clock.sleep_until(tick_at) => {
                    tick_at = self.clock.instant() + TICK;
                    self.tick();
                }
            }
        };
        let until = self.clock.instant() + STREAMS_END_WITHIN;
        self.drain(until).await;
        self.order.order.keep.iter().for_each(state::keep_sessions);
        self.write_down(&self.record(&report)).await?;
        self.control.grew(self.output.ends());
        self.control.send(&Notice::Ended).await;
        if !self.control.is_connected() {
            // The end is to be stored, and what waits for it begun.
            restart(self.order.restart.as_ref());
        }
        Ok(())
    }

    /// Ends every process. `exit` is set if the program has ended by itself.
    fn end(&mut self, exit: Option<Exit>) {
        let Some(mut program) = self.program.take() else { return };
        let word = self.order.order.stop_signal;
        self.ending = Some(Box::pin(async move { ending::end_tree(&mut program, exit, word).await }));
    }

    fn on_event(&mut self, event: ControlEvent) {
        match event {
            ControlEvent::Word(Word::Input { id, text }) => {
                if self.control.is_new(id) {
                    self.unwritten.extend(text.as_bytes());
                }
            }
            ControlEvent::Word(Word::CloseInput) => self.input = None,
            ControlEvent::Word(Word::End) => self.end(None),
            ControlEvent::Word(Word::Read { position }) => self.output.was_read(position),
            ControlEvent::Word(Word::Session { id }) => {
                self.order.order.keep.iter_mut().for_each(|keep| keep.announced = Some(id.clone()));
            }
            ControlEvent::Word(Word::Park { is_parked }) => self.is_parked = is_parked,
            ControlEvent::Connected => self.control.grew(self.output.ends()),
            ControlEvent::Disconnected if self.order.ends_with_daemon => self.end(None),
            ControlEvent::Disconnected => {}
        }
    }

    fn tick(&mut self) {
        if self.program.is_some() {
            tree::reap_adopted(self.process);
        }
        self.control.tick(!self.is_parked);
        self.alone_ticks = if self.control.is_connected() { 0 } else { self.alone_ticks.saturating_add(1) };
        if !self.folder.order().exists() {
            // The folder was removed: no daemon will ever find this run, and its output goes nowhere.
            self.end(None);
        } else if self.alone_ticks >= ALONE_TICKS_MAX {
            self.alone_ticks = 0;
            restart(self.order.restart.as_ref());
        }
        let is_late = self.order.seconds_max.is_some_and(|max| self.control.ran_seconds() > max);
        // A daemon counts by itself.
        if is_late && !self.control.is_connected() && self.program.is_some() {
            self.timed_out = true;
            self.end(None);
        }
        // A program that waits for a person, for the disk or for a daemon that reads cannot print.
        let may_print = !self.is_parked && !self.output.is_blocked();
        let silent = self.silence.tick(self.output.ends(), may_print);
        if let Some(max) = self.order.stall_seconds.filter(|max| silent >= *max && self.program.is_some()) {
            self.stalled = Some(max);
            self.end(None);
        }
    }

    /// What was printed before the end. A stream that a process outside keeps open is not waited for.
    async fn drain(&mut self, until: Instant) {
        let mut tick_at = self.clock.instant() + TICK;
        while !self.output.is_over() {
            tokio::select! {
                // What waits for a daemon starts one, or ends when its folder was removed.
                () = self.clock.sleep_until(tick_at), if self.output.is_blocked() => {
                    tick_at = self.clock.instant() + TICK;
                    self.tick();
                    if !self.folder.order().exists() {
                        return;
                    }
                }
                () = self.output.step() => {}
                event = self.control.next() => self.on_event(event),
                () = self.clock.sleep_until(until), if !self.output.is_blocked() => return,
            }
        }
    }

    /// The end of the run must be found, so a full disk is waited for; a removed folder is not.
    async fn write_down(&self, record: &ExitRecord) -> io::Result<()> {
        loop {
            match record.write(self.folder) {
                Err(_) if self.folder.order().exists() => self.clock.sleep(TICK).await,
                written => return written,
            }
        }
    }

    fn record(&self, report: &Report) -> ExitRecord {
        let (code, signal, processes) = match report {
            Report::Ended { code, signal, processes } => (*code, *signal, *processes),
            Report::Failed { .. } => (None, None, 0),
        };
        let (timed_out, at) = (self.timed_out, self.clock.now().as_millis());
        let out_bytes = Some(self.output.ends().0);
        ExitRecord { code, signal, processes, timed_out, stalled: self.stalled, out_bytes, at, error: None }
    }
}

/// From here on the program may have begun, so no other attempt may begin it.
async fn begin(folder: &RunFolder, order: &Supervision, lock: &OwnedFd) -> io::Result<(Program, Output)> {
    if let Some(run_socket) = &order.order.socket {
        socket::open(run_socket).map_err(|error| io::Error::other(format!("its socket: {error}")))?;
    }
    write_private(&folder.begun(), "")?;
    let (out, out_end) = io::pipe()?;
    let (err, err_end) = io::pipe()?;
    // The program inherits these two from this process, which then gives them up: they end with the program.
    rustix::stdio::dup2_stdout(&out_end)?;
    rustix::stdio::dup2_stderr(&err_end)?;
    drop((out_end, err_end));
    let started = Program::start(&order.order, Some(lock.as_fd())).await;
    let null: OwnedFd = File::options().write(true).open("/dev/null")?.into();
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    Ok((started?, Output::new(folder, out.into(), err.into())?))
}

/// Starts a daemon, unless one is there that has not come yet, or a person has stopped the last one.
fn restart(order: Option<&Restart>) {
    let Some(order) = order.filter(|order| !order.unless.exists()) else { return };
    if std::os::unix::net::UnixStream::connect(&order.socket).is_err() {
        let _ = process::start_daemon(order);
    }
}

async fn ended(ending: &mut Option<Ending>) -> Report {
    match ending {
        Some(ending) => ending.await,
        None => std::future::pending().await,
    }
}

async fn exited(program: &mut Option<Program>) -> Exit {
    match program {
        Some(program) => program.ended().await,
        None => std::future::pending().await,
    }
}

async fn write_some(input: &mut Option<Sender>, bytes: &[u8]) -> io::Result<usize> {
    match input {
        Some(input) => input.write(bytes).await,
        None => std::future::pending().await,
    }
}
