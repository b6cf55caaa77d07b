//! Reader processes as they are: this program starts itself as one, or as one that tries what a reader must not.
//!
//! A layer that this kernel does not have is reported and skipped; all others must hold.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "tests start processes, look at the real clock and read the arguments"
)]

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use matsu_adapters::descriptors;
use matsu_adapters::reading::{self, ReaderLimits, Readers, child, lockdown};
use matsu_core::clock::Clock;
use matsu_core::ports::extractor::ExtractError;
use matsu_testkit::hostile;

const TESTS: &[(&str, fn())] = &[
    ("a_reader_opens_no_file", a_reader_opens_no_file),
    ("a_reader_reaches_no_network", a_reader_reaches_no_network),
    ("a_reader_keeps_nothing_that_was_open", a_reader_keeps_nothing_that_was_open),
    ("a_reader_ends_at_its_memory_limit", a_reader_ends_at_its_memory_limit),
    ("a_reader_ends_with_who_started_it", a_reader_ends_with_who_started_it),
    ("documents_are_read_by_a_process_that_is_used_again", documents_are_read_by_a_process_that_is_used_again),
    ("what_breaks_a_reader_is_one_error", what_breaks_a_reader_is_one_error),
    ("a_reader_that_hangs_is_killed", a_reader_that_hangs_is_killed),
    ("a_reader_that_died_while_idle_costs_nothing", a_reader_that_died_while_idle_costs_nothing),
    ("readers_end_when_there_is_no_work", readers_end_when_there_is_no_work),
    ("an_answer_without_end_is_cut_off", an_answer_without_end_is_cut_off),
];

fn main() -> ExitCode {
    let given: Vec<String> = std::env::args().skip(1).collect();
    match given.first().map(String::as_str) {
        Some("__read") => return child::run(),
        Some("__hang") => return hang(),
        Some("__flood") => return flood(),
        Some("__try") => return attempt(&given[1], &given[2..]),
        _ => {}
    }
    // As the usual test programs do: words are filters, and a list is asked for by some tools.
    let filters: Vec<&String> = given.iter().filter(|word| !word.starts_with("--")).collect();
    let mut failed = 0;
    for (name, test) in TESTS {
        if given.iter().any(|word| word == "--list") {
            println!("{name}: test");
        } else if filters.is_empty() || filters.iter().any(|filter| name.contains(filter.as_str())) {
            let is_well = std::panic::catch_unwind(test).is_ok();
            println!("test {name} ... {}", if is_well { "ok" } else { "FAILED" });
            failed += u8::from(!is_well);
        }
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn this_program() -> PathBuf {
    std::env::current_exe().unwrap()
}

// What is tried in a process of its own.

/// Takes one layer or all of them and then tries something. Exits with 0 if it was denied, 1 if it worked, 2 if the
/// layer is not there.
fn attempt(layer: &str, what: &[String]) -> ExitCode {
    descriptors::close_inherited();
    let taken = match layer {
        "all" => lockdown::apply(),
        "landlock" => lockdown::deny_files_and_connections()
            .and_then(|is_there| if is_there { Ok(()) } else { Err(io::Error::other("no Landlock")) }),
        "namespaces" => lockdown::leave_network(),
        "limits" => lockdown::limit_resources(),
        other => panic!("no layer {other}"),
    };
    if let Err(error) = taken {
        eprintln!("{layer}: {error}");
        return ExitCode::from(2);
    }
    let tried: io::Result<()> = match what[0].as_str() {
        "read" => std::fs::read(&what[1]).map(drop),
        "write" => std::fs::write(&what[1], "x"),
        "list" => std::fs::read_dir(&what[1]).map(drop),
        "connect" => TcpStream::connect(&what[1]).map(drop),
        "send" => UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.send_to(b"x", &what[1])).map(drop),
        "start" => Command::new("/bin/true").status().map(drop),
        other => panic!("no attempt {other}"),
    };
    match tried {
        Ok(()) => ExitCode::from(1),
        Err(error) => {
            eprintln!("{error}");
            ExitCode::SUCCESS
        }
    }
}

/// Reads everything and never answers.
fn hang() -> ExitCode {
    let _ = io::stdin().read_to_end(&mut Vec::new());
    ExitCode::SUCCESS
}

/// Answers with a length that no document has, and then without an end.
fn flood() -> ExitCode {
    let mut output = io::stdout();
    let _ = output.write_all(&u32::MAX.to_le_bytes());
    while output.write_all(&[b'x'; 4096]).is_ok() {}
    ExitCode::SUCCESS
}

#[track_caller]
fn denied(layer: &str, what: &[&str]) {
    let done = Command::new(this_program()).arg("__try").arg(layer).args(what).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    match done.status.code() {
        Some(0) => {}
        Some(2) if layer != "all" && layer != "limits" => println!("SKIPPED on this kernel: {layer}: {said}"),
        _ => panic!("{layer} {what:?}: {:?} {said}", done.status),
    }
}

fn a_reader_opens_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let (there, new) = (folder.path().join("secret"), folder.path().join("new"));
    std::fs::write(&there, "a secret").unwrap();
    let (there, new) = (there.to_str().unwrap(), new.to_str().unwrap());
    for layer in ["all", "landlock", "limits"] {
        for what in [["read", there], ["write", there], ["write", new], ["list", "/"]] {
            denied(layer, &what);
        }
    }
    // Limits let a program be started that can then open nothing, not even its libraries.
    denied("all", &["start"]);
    denied("landlock", &["start"]);
    assert_eq!(std::fs::read_to_string(there).unwrap(), "a secret");
    assert!(!std::path::Path::new(new).exists());
}

fn a_reader_reaches_no_network() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (tcp, udp) = (server.local_addr().unwrap().to_string(), datagrams.local_addr().unwrap().to_string());
    assert!(TcpStream::connect(&tcp).is_ok(), "it is there");
    for layer in ["all", "namespaces", "limits"] {
        denied(layer, &["connect", &tcp]);
        denied(layer, &["send", &udp]);
    }
    // Landlock knows TCP only.
    denied("landlock", &["connect", &tcp]);
}

/// A file that the parent process left open for its children is closed before anything else.
fn a_reader_keeps_nothing_that_was_open() {
    let script = "exec 7</etc/passwd 8</etc/passwd; exec \"$0\" __read";
    let mut child = Command::new("/bin/sh")
        .args(["-c", script])
        .arg(this_program())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // Its first answer comes after its lockdown.
    let mut stdin = child.stdin.take().unwrap();
    let request = markdown("# One");
    stdin.write_all(&request.head().unwrap()).unwrap();
    stdin.write_all(&request.body).unwrap();
    child.stdout.as_mut().unwrap().read_exact(&mut [0; 4]).unwrap();
    let open = std::fs::read_dir(format!("/proc/{}/fd", child.id()));
    // Only the superuser may look at a process that cannot be dumped.
    if let Ok(open) = open {
        let targets: Vec<PathBuf> = open.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok()).collect();
        assert!(!targets.iter().any(|target| target.ends_with("passwd")), "{targets:?}");
        assert!(targets.len() <= 4, "{targets:?}");
    } else {
        println!("SKIPPED for this user: what a reader has open");
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

fn a_reader_ends_at_its_memory_limit() {
    let said = read_one(hostile::pdf_that_inflates_to(3 * 1024 * 1024 * 1024), "application/pdf");
    assert_eq!(said, Err(ExtractError::Malformed("reading it takes more than 512 MiB of memory".to_owned())));
}

fn a_reader_ends_with_who_started_it() {
    let mut command = Command::new(this_program());
    // Not where the test prints: that may be a file, and a reader may not make files longer.
    let mut child = command.arg("__read").stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // In the middle of a request.
    stdin.write_all(&[40, 0, 0, 0, b'{']).unwrap();
    drop(stdin);
    let status = child.wait().unwrap();
    assert_eq!(status.signal(), None, "{status}");
}

// The pool.

fn markdown(text: &str) -> matsu_reader::wire::Request {
    matsu_reader::wire::Request {
        want: matsu_reader::wire::Want::Document,
        media_type: "text/markdown".to_owned(),
        body: text.as_bytes().to_vec(),
    }
}

fn limits() -> ReaderLimits {
    ReaderLimits { processes_max: 2, documents_max: 3, ..ReaderLimits::default() }
}

fn pool(mode: &str, limits: ReaderLimits) -> Readers {
    Readers::new(this_program(), vec![mode.to_owned()], limits, Clock::system())
}

fn on_a_runtime<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

async fn title(readers: &Readers, text: &str) -> Result<String, ExtractError> {
    let read = reading::document(readers, text.as_bytes().to_vec(), "text/markdown").await;
    read.map(|document| document.title)
}

fn read_one(body: Vec<u8>, media_type: &str) -> Result<String, ExtractError> {
    on_a_runtime(async {
        let readers = pool("__read", limits());
        let read = reading::document(&readers, body, media_type).await;
        let next = title(&readers, "# Next").await;
        assert_eq!(next.as_deref(), Ok("Next"), "the pool reads on");
        read.map(|document| document.text)
    })
}

/// Processes that this one has started and that still run.
fn children() -> Vec<u32> {
    let mut found = Vec::new();
    for task in std::fs::read_dir("/proc/self/task").unwrap() {
        let list = std::fs::read_to_string(task.unwrap().path().join("children")).unwrap_or_default();
        found.extend(list.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
    }
    let runs =
        |pid: &u32| std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "));
    found.retain(runs);
    found
}

fn documents_are_read_by_a_process_that_is_used_again() {
    on_a_runtime(async {
        gone().await;
        let readers = pool("__read", limits());
        assert!(children().is_empty(), "none is started before it is needed");
        assert_eq!(title(&readers, "# One").await.as_deref(), Ok("One"));
        let first = children();
        assert_eq!(first.len(), 1);
        assert_eq!(title(&readers, "# Two").await.as_deref(), Ok("Two"));
        assert_eq!(children(), first);
        assert_eq!(title(&readers, "# Three").await.as_deref(), Ok("Three"));
        assert_eq!(title(&readers, "# Four").await.as_deref(), Ok("Four"));
        assert!(!children().iter().any(|pid| first.contains(pid)), "after three documents it is replaced");
        let texts: Vec<String> = (0..12).map(|n| format!("# Title {n}")).collect();
        let read = futures_util::future::join_all(texts.iter().map(|text| title(&readers, text))).await;
        assert!(read.iter().zip(&texts).all(|(read, text)| read.as_ref().is_ok_and(|read| text.ends_with(read))));
        assert!(children().len() <= 2, "{:?}", children());
    });
}

fn what_breaks_a_reader_is_one_error() {
    let endless = "reading it recurses without an end";
    let said = read_one(hostile::pdf_that_draws_itself(), "application/pdf");
    assert_eq!(said, Err(ExtractError::Malformed(endless.to_owned())));
    let outer = hostile::pdf_inside_a_pdf("The outer text", &hostile::pdf_that_draws_itself());
    assert_eq!(read_one(outer, "application/pdf").as_deref(), Ok("The outer text"), "attachments are not opened");
    let began = Instant::now();
    let said = read_one(hostile::html_nested(200_000), "text/html");
    assert!(matches!(&said, Err(ExtractError::Malformed(why)) if why.contains("deep")), "{said:?}");
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}

fn a_reader_that_hangs_is_killed() {
    on_a_runtime(async {
        let readers = pool("__hang", ReaderLimits { time_max: Duration::from_millis(200), ..limits() });
        let said = title(&readers, "# One").await;
        assert_eq!(said, Err(ExtractError::Malformed("reading it took longer than 0.2 s".to_owned())));
        gone().await;
    });
}

fn a_reader_that_died_while_idle_costs_nothing() {
    on_a_runtime(async {
        let readers = pool("__read", limits());
        assert_eq!(title(&readers, "# One").await.as_deref(), Ok("One"));
        let pid = rustix::process::Pid::from_raw(i32::try_from(children()[0]).unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        assert_eq!(title(&readers, "# Two").await.as_deref(), Ok("Two"));
    });
}

fn readers_end_when_there_is_no_work() {
    on_a_runtime(async {
        let readers = pool("__read", ReaderLimits { idle_max: Duration::from_millis(50), ..limits() });
        assert_eq!(title(&readers, "# One").await.as_deref(), Ok("One"));
        gone().await;
        assert_eq!(title(&readers, "# Two").await.as_deref(), Ok("Two"));
    });
}

fn an_answer_without_end_is_cut_off() {
    on_a_runtime(async {
        let readers = pool("__flood", limits());
        let said = title(&readers, "# One").await;
        assert!(matches!(&said, Err(ExtractError::Malformed(why)) if why.contains("larger than allowed")), "{said:?}");
        gone().await;
    });
}

/// Until no process is left.
async fn gone() {
    let clock = Clock::system();
    let began = clock.instant();
    while !children().is_empty() {
        assert!(clock.instant().duration_since(began) < Duration::from_secs(30), "{:?}", children());
        clock.sleep(Duration::from_millis(5)).await;
    }
}
