//! `matsu __read`: a process that reads documents and can do nothing else. It locks itself down before it reads its
//! first byte, and ends with the process that started it.

use std::fs::File;
use std::io::{self, BufReader};
use std::os::fd::AsFd;
use std::process::ExitCode;

use matsu_reader::wire;
use rustix::event::{PollFd, PollFlags, poll};

use super::lockdown;
use crate::descriptors;

/// Documents nest, and their parsers recurse with them. A parser that needs more than this is ended by the overflow.
const STACK_BYTES: usize = 64 * 1024 * 1024;

/// What `matsu __read` does: requests on standard input, answers on standard output.
#[must_use]
pub fn run() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("matsu __read: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve() -> io::Result<()> {
    descriptors::close_inherited();
    // Whatever a library prints must not get between the answers.
    let answers = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    rustix::stdio::dup2_stdout(io::stderr())?;
    lockdown::apply()?;
    // A panic is caught and is an answer; its report would only be noise.
    std::panic::set_hook(Box::new(|_| {}));
    let work = move || {
        let (mut input, mut output) = (BufReader::new(io::stdin()), answers);
        wire::serve(&mut input, &mut output, lockdown::allow_cpu_for_one_document)
    };
    let worker = std::thread::Builder::new().name("reader".to_owned()).stack_size(STACK_BYTES).spawn(move || {
        let ended = work();
        let code = if let Err(error) = &ended {
            eprintln!("matsu __read: {error}");
            1
        } else {
            0
        };
        // Here and not by joining: the other thread waits for another event.
        std::process::exit(code);
    })?;
    lockdown::forbid_processes()?;
    wait_for_hang_up()?;
    // The process that started this one is gone, so a reply in the making has no reader.
    drop(worker);
    Ok(())
}

/// Until no process holds the other end of standard input any more.
fn wait_for_hang_up() -> io::Result<()> {
    let stdin = io::stdin();
    loop {
        let mut watched = [PollFd::new(&stdin, PollFlags::empty())];
        match poll(&mut watched, None) {
            Ok(_) if watched[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) => {
                return Ok(());
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
