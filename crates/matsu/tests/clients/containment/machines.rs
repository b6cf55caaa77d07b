//! Machines that cannot confine runs as this one does: without user namespaces, without Landlock, without both, and
//! inside a container. What is reported is true, the same everywhere, and names the setting.

use std::process::{Command, Output};

use matsu_testkit::skipped::skipped;
use serde_json::{Value, json};

use crate::home::Home;
use crate::stdio::Client;

const NETWORK: &str = "the network, loopback included";

/// A home on a machine that lacks something.
struct Machine {
    home: Home,
    launcher: Vec<String>,
}

impl Machine {
    fn without(lacks: &[&str], settings: &str) -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/containment/without.py");
        let launcher = [&["python3", script], lacks, &["--"]].concat();
        Self::under(launcher.into_iter().map(str::to_owned).collect(), settings)
    }

    /// Everything of this home is started by another command.
    fn under(launcher: Vec<String>, settings: &str) -> Self {
        let home = Home::new();
        let config = home.path(".config/matsu");
        matsu_testkit::fake_agents::write(&config.join("agents")).unwrap();
        std::fs::write(config.join("config.toml"), settings).unwrap();
        std::fs::create_dir_all(home.path("project")).unwrap();
        Self { home, launcher }
    }

    fn command(&self, args: &[&str]) -> Command {
        let plain = self.home.command(args);
        let mut command = Command::new(&self.launcher[0]);
        command.args(&self.launcher[1..]).arg(plain.get_program()).args(plain.get_args()).env_clear();
        command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// What the doctor found about runs.
    fn doctor(&self) -> Value {
        let output = self.run(&["doctor", "--json"]);
        let found: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
        let runs = found["findings"].as_array().unwrap().iter().find(|finding| finding["what"] == "runs");
        runs.unwrap_or_else(|| panic!("{found}")).clone()
    }

    /// What `matsu agents` prints.
    fn agents(&self) -> String {
        let output = self.run(&["agents"]);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The reply to a start.
    fn start(&self) -> Value {
        let project = self.home.path("project");
        let mut client = Client::shaken(self.command(&["mcp", "--tools", "all", "--root", project.to_str().unwrap()]));
        client.call("use_agent", &json!({ "cli_name": "script", "message": "echo ran", "run_async": true }))
    }
}

/// One level, in the same words by the doctor, by `matsu agents` and by the reply to a start.
fn assert_level(machine: &Machine, level: &str, gaps: &[&str]) -> Value {
    let text = format!("{level}; not covered: {}", gaps.join("; "));
    let runs = machine.doctor();
    assert_eq!(runs["detail"], text, "{runs}");
    let agents = machine.agents();
    let line = agents.lines().find(|line| line.contains(": ") && line.contains("script")).unwrap_or_default();
    assert!(line.ends_with(&text), "{agents}");
    assert!(agents.lines().next().unwrap().contains("CONFINEMENT"), "{agents}");
    let begun = machine.start();
    assert_eq!((&begun["confinement"], &begun["not_covered"]), (&json!(level), &json!(gaps)), "{begun}");
    runs
}

/// Whether this machine has the thing that a test takes away; if it has not, there is nothing to compare with.
fn is_sealed_here() -> bool {
    let home = Home::new();
    let found = home.run(&["doctor"]).to_string();
    let is_sealed = found.contains("sealed; not covered");
    if !is_sealed {
        skipped(&format!("this machine cannot seal runs: {found}"));
        assert!(std::env::var_os("MATSU_TEST_LEVELS").is_none(), "sealed must be tried here");
    }
    is_sealed
}

const FENCED_GAPS: &[&str] = &[
    NETWORK,
    "files below /etc that only the user who runs Matsu can read",
    "modes, times, attributes and access lists of the user's files (chmod, touch, setfattr)",
    "names and sizes of the user's files, and when they are used (stat, inotify)",
    "the processor affinity of other processes of the same user",
    "the settings of the agent's own program",
    "sockets of other programs in the file system",
    "the list of processes",
];

#[test]
fn this_machine_says_the_same_everywhere() {
    if is_sealed_here() {
        let runs = assert_level(&Machine::under(vec!["env".to_owned()], ""), "sealed", &[NETWORK]);
        assert_eq!((&runs["state"], &runs["advice"]), (&json!("ok"), &Value::Null), "{runs}");
    }
}

#[test]
fn without_user_namespaces_runs_are_fenced_and_the_reason_is_named() {
    if is_sealed_here() {
        let machine = Machine::without(&["namespaces"], "");
        let runs = assert_level(&machine, "fenced", FENCED_GAPS);
        assert_eq!(runs["state"], "note", "{runs}");
        let advice = runs["advice"].as_str().unwrap();
        assert!(advice.starts_with("runs cannot be sealed here: cannot enter namespaces"), "{advice}");
    }
}

#[test]
fn without_landlock_runs_are_sealed_and_abstract_sockets_are_named() {
    if is_sealed_here() {
        let machine = Machine::without(&["landlock"], "");
        assert_level(&machine, "sealed", &[NETWORK, "abstract sockets of other programs"]);
    }
}

#[test]
fn without_both_no_run_is_started_and_the_setting_is_named() {
    let machine = Machine::without(&["namespaces", "landlock"], "");
    let runs = machine.doctor();
    assert_eq!((&runs["state"], &runs["detail"]), (&json!("problem"), &json!("no run can be started")), "{runs}");
    let refused = machine.start();
    assert_eq!(refused["error_code"], "CONFINEMENT_UNAVAILABLE", "{refused}");
    let agents = machine.agents();
    for text in [runs["advice"].as_str().unwrap(), refused["error"].as_str().unwrap(), &agents] {
        for words in
            ["cannot be sealed here: cannot enter namespaces", "cannot be fenced here", "agents.confine", "\"open\""]
        {
            assert!(text.contains(words), "{words}: {text}");
        }
    }
    assert!(agents.contains("runs are disabled here"), "{agents}");
    let open = Machine::without(&["namespaces", "landlock"], "[agents]\nconfine = \"open\"\n");
    let runs = assert_level(&open, "open", &["anything that the user who runs Matsu can do"]);
    assert_eq!(runs["state"], "note", "{runs}");
    assert!(runs["advice"].as_str().unwrap().contains("agents.confine"), "{runs}");
}

#[test]
fn a_level_that_is_asked_for_and_cannot_be_had_is_not_replaced() {
    let machine = Machine::without(&["namespaces"], "[agents]\nconfine = \"sealed\"\n");
    let refused = machine.start();
    assert_eq!(refused["error_code"], "CONFINEMENT_UNAVAILABLE", "{refused}");
    let error = refused["error"].as_str().unwrap();
    assert!(error.contains("cannot be sealed") && error.contains("\"fenced\""), "{error}");
    assert!(!error.contains("cannot be fenced"), "{error}");
}

#[test]
fn inside_a_container_runs_are_sealed_where_it_lets_them() {
    if !is_sealed_here() {
        return;
    }
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    // Namespaces inside namespaces. Not of processes: the tests must find their daemon by its number.
    let nested = Machine::under(words("unshare --user --map-root-user --mount"), "");
    assert_level(&nested, "sealed", &[NETWORK]);
    // One that hides parts of /proc, as container engines do: the kernel then lets no process inside mount another.
    let hides = "mount -t tmpfs none /proc/fs && exec \"$0\" \"$@\"";
    let mut launcher = words("unshare --user --map-root-user --mount sh -c");
    launcher.push(hides.to_owned());
    let hiding = Machine::under(launcher, "");
    let runs = assert_level(&hiding, "fenced", FENCED_GAPS);
    assert!(runs["advice"].as_str().unwrap().contains("/proc"), "{runs}");
}
