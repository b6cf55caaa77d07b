//! Another process: this test program once more; its environment names what to do.
#![allow(clippy::disallowed_methods, reason = "tests start the process that they kill")]

use std::path::Path;
use std::process::{Command, Stdio};

use matsu_core::job::JobKind;

use super::url;
use crate::harness::TestStore;

const WHAT: &str = "MATSU_TEST_CHILD";
const WHERE: &str = "MATSU_TEST_CHILD_STORE";

/// The command that runs `what` on the store at `path`, its words on a pipe.
pub fn command(what: &str, path: &Path) -> Command {
    in_place(Command::new(std::env::current_exe().unwrap()), what, path)
}

/// The same, where `prepare` (a line of shell) has changed the file systems that the child sees, and only it.
/// Needs no rights where the system lets users have name spaces of their own. `None`: it does not.
pub fn command_with_mounts(prepare: &str, what: &str, path: &Path) -> Option<Command> {
    let allowed = Command::new("unshare").args(["-rm", "true"]).stderr(Stdio::null()).status();
    if !allowed.is_ok_and(|status| status.success()) {
        return None;
    }
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-ec", &format!("{prepare}\nexec \"$0\" \"$@\"")]);
    command.arg(std::env::current_exe().unwrap());
    Some(in_place(command, what, path))
}

fn in_place(mut command: Command, what: &str, path: &Path) -> Command {
    command.args(["sqlite_only::child::the_other_process", "--exact", "--nocapture", "--test-threads=1"]);
    command.env(WHAT, what).env(WHERE, path).stdout(Stdio::piped());
    command
}

/// Not a test of its own: nothing to do unless a test has started us for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_other_process() {
    let Ok(what) = std::env::var(WHAT) else { return };
    let path = std::env::var(WHERE).unwrap();
    let path = Path::new(&path);
    match what.as_str() {
        "write" => write(path).await,
        "full" => super::disk::on_a_small_disk(path).await,
        "read-only" => super::disk::on_a_read_only_disk(path).await,
        other => panic!("there is no action {other}"),
    }
}

/// Four writers, until the parent kills this process. A line is printed only after the store has confirmed the write.
async fn write(path: &Path) {
    let test = TestStore::open_at(&url(path)).await;
    test.register(&test.node).await;
    let task = test.research().await;
    println!("task {}", task.id);
    let writer = async || loop {
        let id = test.enqueue(&task.id, JobKind::Search).await;
        println!("queued {id}");
        for job in test.claim(1).await {
            println!("started {} {}", job.id, job.attempt);
            test.complete(&job).await.unwrap();
            println!("completed {}", job.id);
        }
    };
    tokio::join!(writer(), writer(), writer(), writer());
}
