//! Delivery to the real command lines: a parent that `matsu connect` has set up gives work away, a fault comes before the
//! result does, and the model learns of it all the same. `make delivery` runs it and puts what it prints into
//! docs/delivery.md.

use std::path::Path;
use std::process::Child;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use matsu_testkit::model_server::{Asked, ModelServer, Reply};
use serde_json::{Value, json};

use super::cable::Cable;
use super::connect::{User, Workplace, for_each, name_of, until_or};
use super::programs;
use crate::home::{Home, kill, until};

/// What comes between the start of the work and its delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    ParentKilled,
    DaemonKilled,
    BothStopped,
    ClientTimeout,
    NetworkCut,
    LongCut,
    Quota,
    Question,
}

const FAULTS: &[(Fault, &str)] = &[
    (Fault::None, "none"),
    (Fault::ParentKilled, "parent killed"),
    (Fault::DaemonKilled, "daemon killed"),
    (Fault::BothStopped, "both stopped"),
    (Fault::ClientTimeout, "client timeout"),
    (Fault::NetworkCut, "network cut"),
    (Fault::LongCut, "network cut until after the end"),
    (Fault::Quota, "quota"),
    (Fault::Question, "question"),
];

const DELEGATE: &str = "Delegate it.";
const HELLO: &str = "Hello.";

/// How long the agent works.
const WORKS: Duration = Duration::from_secs(8);
const SOON: Duration = Duration::from_secs(150);
/// After so many seconds a client gives up its calls where that is the fault. Less than the agent works.
const GIVES_UP: u64 = 3;
/// How long a network stays cut.
const CUT: Duration = Duration::from_secs(1);

/// What the model was asked, as far as this is about it.
#[derive(Default)]
struct Seen {
    task: Option<String>,
    /// The first request that had the result, or the id in a session that did not start it.
    delivered: Option<Instant>,
    read: Option<Instant>,
    /// The first request that shows a call which its client gave up.
    gave_up: Option<Instant>,
    /// Requests that had the id or the result again after the model had read it and gone on.
    again: usize,
    turns: usize,
}

/// The agent and its script. The script does not have the mark whole: only a result shows it.
fn work(fault: Fault, mark: &str) -> (&'static str, String) {
    let (head, tail) = mark.split_at(8);
    let seconds = WORKS.as_secs();
    match fault {
        Fault::Quota => {
            let limit = r#"{"type":"result","error":"usage limit reached, try again in 3 seconds"}"#;
            let name = format!(r#"printf '{{"type":"session","id":"talk-%s%s"}}\n' '{head}' '{tail}'"#);
            ("poor", format!("{name}; echo '{limit}'"))
        }
        Fault::Question => {
            let ask = r#"{"type":"question","id":"q1","text":"Go on?","options":["yes","no"]}"#;
            let say = format!(r#"printf '{{"type":"result","text":"%s%s"}}\n' '{head}' '{tail}'"#);
            ("events", format!("sleep 1; echo '{ask}'; read answer; {say}"))
        }
        _ => ("script", format!("sleep {seconds}; printf '%s%s' '{head}' '{tail}'")),
    }
}

/// The first `"name":"value"` in a text that holds JSON, whatever it is quoted in.
fn field(text: &str, name: &str) -> Option<String> {
    let plain = text.replace('\\', "");
    let at = plain.find(&format!("\"{name}\":"))? + name.len() + 3;
    let rest = plain[at..].trim_start().strip_prefix('"')?;
    rest.split('"').next().map(str::to_owned)
}

/// A model that gives the work away, waits for it, answers, and reads what it is shown.
fn model(fault: Fault, mark: String, seen: Arc<Mutex<Seen>>) -> impl FnMut(&Asked) -> Reply + Send + 'static {
    move |asked| {
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        let all = asked.messages.join("\n");
        if !all.contains(DELEGATE) && !all.contains(HELLO) {
            return Reply::text("A title.");
        }
        seen.turns += 1;
        let is_next = !all.contains(DELEGATE);
        let results = asked.results.join("\n");
        if results.contains("timed out") {
            seen.gave_up.get_or_insert_with(Instant::now);
        }
        let status = |arguments: Value| Reply::tool(&name_of(asked, "get_task_status"), arguments);
        if results.contains(&mark) {
            seen.delivered.get_or_insert_with(Instant::now);
            seen.read.get_or_insert_with(Instant::now);
            return Reply::text("It is done.");
        }
        if is_next {
            let Some(task) = seen.task.clone().filter(|task| all.contains(task.as_str())) else {
                return Reply::text("My turn is over.");
            };
            seen.delivered.get_or_insert_with(Instant::now);
            return if seen.read.is_some() { Reply::text("I know.") } else { status(json!({ "task_id": task })) };
        }
        if seen.read.is_some() && seen.task.as_ref().is_some_and(|task| asked.last().contains(task.as_str())) {
            seen.again += 1;
            return Reply::text("I know.");
        }
        let question = || Some((field(&results, "job_id")?, field(&results, "question_id").unwrap_or("q1".to_owned())));
        if results.contains("Go on?")
            && let (Some(task), Some((job, question))) = (seen.task.clone(), question())
        {
            let answer = json!({ "task_id": task, "job_id": job, "question_id": question, "option": "yes" });
            return Reply::tool(&name_of(asked, "answer_question"), answer);
        }
        if seen.task.is_none() {
            seen.task = field(&results, "task_id");
        }
        match &seen.task {
            Some(task) => status(json!({ "task_id": task, "timeout": 3_580, "wait_for": "all" })),
            None => {
                let (agent, message) = work(fault, &mark);
                let arguments = json!({ "cli_name": agent, "message": message, "run_async": true });
                Reply::tool(&name_of(asked, "use_agent"), arguments)
            }
        }
    }
}

/// One delegation; its line of the report.
fn delegate(user: &'static User, programs: &Path, fault: Fault, name: &str, number: usize) -> bool {
    let mark = format!("result-{}-{number}-{}", user.name(), std::process::id());
    let seen = Arc::new(Mutex::new(Seen::default()));
    let look = || seen.lock().unwrap_or_else(PoisonError::into_inner);
    let mut workplace = Workplace::new(user, programs, model(fault, mark.clone(), Arc::clone(&seen)));
    let cable = matches!(fault, Fault::NetworkCut | Fault::LongCut).then(|| workplace.by_cable());
    if fault == Fault::ClientTimeout {
        workplace.limit_calls(GIVES_UP);
    }
    let began = Instant::now();
    let mut client = workplace.begin(DELEGATE);
    let started = until_or("the work was given away", SOON, || look().task.clone());
    let mut hit = None;
    if let Some(task) = &started {
        std::thread::sleep(Duration::from_secs(2));
        hit = strike(fault, &mut workplace, &mut client, cable.as_ref());
        if matches!(fault, Fault::ParentKilled | Fault::BothStopped) {
            if fault == Fault::BothStopped {
                std::thread::sleep(WORKS + Duration::from_secs(4));
                workplace.serve_again();
            }
            until("the work has ended", SOON, || workplace.has_ended(task).then_some(()));
            client = workplace.begin(HELLO);
        }
    }
    let ended = until_or("the client has ended", SOON, || client.try_wait().unwrap());
    if ended.is_none() {
        kill_tree(&mut client);
    }
    let seen = look();
    if fault == Fault::ClientTimeout {
        hit = seen.gave_up;
    }
    let is_delivered = seen.delivered.is_some();
    let is_hit = matches!(fault, Fault::None | Fault::Quota | Fault::Question)
        || hit.is_some_and(|hit| seen.delivered.is_none_or(|delivered| hit < delivered));
    let seconds = seen.delivered.map_or(0.0, |delivered| (delivered - began).as_secs_f64());
    println!(
        "delivery: {} | {name} | hit {} | delivered {} | again {} | seconds {seconds:.1} | turns {}",
        user.name(),
        u8::from(is_hit),
        u8::from(is_delivered),
        seen.again,
        seen.turns
    );
    if !is_delivered {
        eprintln!("{}: {name}: {:?}\n{}", user.name(), seen.task, workplace.printed());
    }
    is_delivered && is_hit && seen.again == 0
}

fn strike(fault: Fault, workplace: &mut Workplace, client: &mut Child, cable: Option<&Cable>) -> Option<Instant> {
    let now = Instant::now();
    match fault {
        Fault::None | Fault::ClientTimeout | Fault::Quota | Fault::Question => return None,
        Fault::NetworkCut | Fault::LongCut => {
            let cable = cable?;
            let was_open = cable.cut();
            std::thread::sleep(if fault == Fault::LongCut { WORKS + CUT } else { CUT });
            cable.mend();
            return was_open.then_some(now);
        }
        Fault::ParentKilled => kill_tree(client),
        Fault::DaemonKilled => workplace.kill_daemon(),
        Fault::BothStopped => {
            kill_tree(client);
            workplace.kill_daemon();
        }
    }
    Some(now)
}

/// A client and what it has started: its relay would otherwise live a moment longer.
fn kill_tree(client: &mut Child) {
    let pid = client.id();
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let _ = client.kill();
    let _ = client.wait();
    children.split_whitespace().filter_map(|child| child.parse().ok()).for_each(kill);
}

/// How many of each; `None`: not asked for.
fn wanted() -> Option<usize> {
    let wanted = std::env::var("DELIVERY_REAL").ok().and_then(|count| count.parse::<usize>().ok());
    let wanted = wanted.filter(|count| *count > 0);
    if wanted.is_none() {
        println!("delivery to real clients: only with make delivery DELIVERY_REAL=1");
    }
    wanted
}

#[test]
fn delivery_to_real_clients_under_faults() {
    let Some(count) = wanted() else { return };
    // One fault by its name, to repeat it.
    let only = std::env::var("DELIVERY_FAULT").ok();
    let faults: Vec<_> = FAULTS.iter().filter(|(_, name)| only.as_ref().is_none_or(|only| only == name)).collect();
    for_each("results reach the model although a fault comes first", |user, programs| {
        let mut good = 0;
        // Gemini CLI tries twice to come back to a broken stream, six seconds in all, and then waits for its own limit.
        let comes_back = |fault: Fault| fault != Fault::LongCut || user.name() != "gemini";
        let faults: Vec<_> = faults.iter().filter(|(fault, _)| comes_back(*fault)).collect();
        for (fault, name) in &faults {
            for number in 0..count {
                good += usize::from(delegate(user, programs, *fault, name, number));
            }
        }
        let all = faults.len() * count;
        assert_eq!(good, all, "{}", user.name());
        format!("{good} of {all}")
    });
}

/// What Claude Code has without Matsu: a command of its shell in the background. The session that was killed is continued.
fn background(programs: &Path, fault: Fault, name: &str, number: usize) {
    let user = User::claude();
    let mark = format!("result-background-{number}-{}", std::process::id());
    let (head, tail) = mark.split_at(8);
    let command = format!("sleep {}; printf '%s%s' '{head}' '{tail}'", WORKS.as_secs());
    let seen = Arc::new(Mutex::new((None::<Instant>, 0_usize)));
    let (asked_so_far, wanted) = (Arc::clone(&seen), mark.clone());
    let model = ModelServer::with(Box::new(move |asked: &Asked| {
        let all = asked.messages.join("\n");
        if !all.contains(DELEGATE) && !all.contains(HELLO) {
            return Reply::text("A title.");
        }
        let mut asked_so_far = asked_so_far.lock().unwrap_or_else(PoisonError::into_inner);
        asked_so_far.1 += 1;
        if all.contains(&wanted) {
            asked_so_far.0.get_or_insert_with(Instant::now);
            return Reply::text("It is done.");
        }
        if asked_so_far.1 == 1 {
            let arguments = json!({ "command": command, "description": "work", "run_in_background": true });
            return Reply::tool("Bash", arguments);
        }
        Reply::text("I go on when it is done.")
    }))
    .unwrap();
    let home = Home::new();
    user.settle(&home, &model.url());
    let began = Instant::now();
    let mut client = user.start(programs, &home, &model.url(), &["-p", "--allowedTools", "Bash"], DELEGATE);
    until_or("the command was started", SOON, || (seen.lock().unwrap().1 >= 2).then_some(()));
    let mut hit = None;
    if fault == Fault::ParentKilled {
        hit = Some(Instant::now());
        kill_tree(&mut client);
        std::thread::sleep(WORKS + Duration::from_secs(2));
        client = user.start(programs, &home, &model.url(), &["-p", "--continue", "--allowedTools", "Bash"], HELLO);
    }
    if until_or("the client has ended", SOON, || client.try_wait().unwrap()).is_none() {
        kill_tree(&mut client);
    }
    let (delivered, turns) = *seen.lock().unwrap_or_else(PoisonError::into_inner);
    let is_hit = fault == Fault::None || hit.is_some_and(|hit| delivered.is_none_or(|delivered| hit < delivered));
    println!(
        "delivery: background | {name} | hit {} | delivered {} | again 0 | seconds {:.1} | turns {turns}",
        u8::from(is_hit),
        u8::from(delivered.is_some()),
        delivered.map_or(0.0, |delivered| (delivered - began).as_secs_f64()),
    );
}

#[test]
fn a_background_command_of_claude_code_beside_it() {
    let Some(count) = wanted() else { return };
    let Some(programs) = programs("a background command of Claude Code") else { return };
    for (fault, name) in [(Fault::None, "none"), (Fault::ParentKilled, "parent killed")] {
        for number in 0..count {
            background(&programs, fault, name, number);
        }
    }
}
