//! `matsu setup`, `upgrade`, `uninstall` and `demo --keep`: the first minutes, and the way out.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;

use matsu_testkit::skipped::skipped;

use crate::home::{Home, run};

const CLAUDE: &str = "{ \"numStartups\": 7 }";
const CODEX: &str = "model = \"gpt\" # mine\n";

/// A user with two clients.
fn home() -> Home {
    // Clients that are installed on this machine are not found.
    let home = Home::sqlite().with_variable("PATH", "/usr/bin:/bin").with_variable("MATSU_RESEARCH_FOLDERS", "none");
    fs::create_dir_all(home.path(".codex")).unwrap();
    fs::write(home.path(".claude.json"), CLAUDE).unwrap();
    fs::write(home.path(".codex/config.toml"), CODEX).unwrap();
    home
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn assert_untouched(home: &Home) {
    assert_eq!(read(&home.path(".claude.json")), CLAUDE);
    assert_eq!(read(&home.path(".codex/config.toml")), CODEX);
    assert!(!home.path(".claude").exists(), "no folder was made");
}

#[test]
fn setup_connects_what_it_finds_and_uninstall_restores_every_byte() {
    let home = home();
    let shown = home.run_json(&["setup", "--dry-run"]);
    assert_eq!((&shown["outcome"], &shown["clients"]), (&json!("shown"), &json!(["claude", "codex"])), "{shown}");
    let texts = shown["texts"].as_array().unwrap();
    assert_eq!(texts.len(), shown["files"].as_array().unwrap().len(), "{shown}");
    let read_first = home.run(&["setup", "--dry-run"]).good().out;
    assert_untouched(&home);

    let done = home.run(&["setup", "--yes"]).good();
    // What was shown is all that was written: without it every file is as it was before.
    for (file, text) in shown["files"].as_array().unwrap().iter().zip(texts) {
        let file = Path::new(file.as_str().unwrap());
        let mut left = read(file);
        for line in text.as_str().unwrap().lines().rev().filter(|line| !line.is_empty()) {
            let at = left.rfind(line).unwrap_or_else(|| panic!("{line:?} is not in {}:\n{left}", file.display()));
            left.replace_range(at..at + line.len(), "");
            assert!(read_first.contains(&format!("\n      {line}\n")), "{line:?} is not in\n{read_first}");
        }
        let before = [(".claude.json", CLAUDE), (".codex/config.toml", CODEX)];
        let before = before.iter().find(|(name, _)| file.ends_with(name)).map_or("", |(_, before)| *before);
        let plain = |text: &str| text.split_whitespace().collect::<String>();
        assert_eq!(plain(&left), plain(before), "{}", file.display());
    }
    assert!(read_first.contains("\n      command = "), "{read_first}");
    for part in ["AI clients found: Claude Code, Codex", "the MCP server in", "matsu uninstall"] {
        assert!(done.out.contains(part), "{part}: {}", done.out);
    }
    assert!(read(&home.path(".claude.json")).contains("mcpServers"));
    assert!(read(&home.path(".claude/settings.json")).contains("hook"), "hooks are a default");
    let again = home.run_json(&["setup", "--yes"]);
    assert_eq!(again["outcome"], "nothing", "{again}");

    let page = home.path(".local/share/man/man1/matsu.1");
    fs::create_dir_all(page.parent().unwrap()).unwrap();
    fs::write(&page, ".TH matsu").unwrap();
    let gone = home.run(&["uninstall", "--yes"]).good();
    assert!(gone.out.contains("Your data is still in"), "{}", gone.out);
    let left = format!("rm {}", page.display());
    assert!(gone.out.contains(&left), "what the installer wrote is named: {}", gone.out);
    assert!(gone.out.contains(&format!("rm {}\n", env!("CARGO_BIN_EXE_matsu"))), "{}", gone.out);
    assert_untouched(&home);
    assert!(home.data_dir().exists());
    home.run(&["uninstall", "--data", "--yes"]);
    assert_eq!(home.run_json(&["uninstall", "--yes"])["files"], json!([]), "a second time finds nothing to do");
}

#[test]
fn setup_connects_again_what_is_on_record_and_not_in_the_files() {
    let home = home();
    home.run(&["connect", "claude", "--yes"]).good();
    // As after a kill between the record and the files, and as after a person removed the entry.
    fs::write(home.path(".claude.json"), CLAUDE).unwrap();
    let shown = home.run(&["setup", "--dry-run"]).good();
    assert!(
        shown.out.contains("Claude Code was connected, but a part of what Matsu wrote for it is gone"),
        "{shown:?}"
    );
    let mended = home.run_json(&["setup", "--yes"]);
    assert_eq!(mended["clients"], json!(["claude", "codex"]), "{mended}");
    assert!(read(&home.path(".claude.json")).contains("mcpServers"));
    // Only the rule for the model is gone.
    fs::remove_file(home.path(".claude/CLAUDE.md")).unwrap();
    assert_eq!(home.run_json(&["setup", "--yes"])["clients"], json!(["claude"]));
    assert!(read(&home.path(".claude/CLAUDE.md")).contains("Matsu"));
    assert_eq!(home.run_json(&["setup", "--yes"])["outcome"], "nothing");
    home.run(&["uninstall", "--yes"]).good();
    assert_untouched(&home);
}

#[test]
fn setup_changes_nothing_without_an_answer_or_where_a_file_is_broken() {
    let home = home();
    let asked = home.run(&["setup"]);
    assert!(asked.code == 1 && asked.err.contains("--yes"), "{asked:?}");
    assert_untouched(&home);
    fs::write(home.path(".claude.json"), "{ broken").unwrap();
    let broken = home.run(&["setup", "--yes"]);
    assert!(broken.code == 1 && broken.err.contains(".claude.json"), "{broken:?}");
    assert_eq!(read(&home.path(".claude.json")), "{ broken");
    assert_eq!(read(&home.path(".codex/config.toml")), CODEX, "either all of it or nothing");
}

#[test]
fn setup_asks_on_a_terminal_and_writes_the_folders_it_is_given() {
    let home = home();
    fs::create_dir_all(home.path("notes")).unwrap();
    // Claude Code: yes. Codex: no. Hooks: no. Folders. Notices: an answer that is none, then none. Write this: yes.
    let typed = format!("y\nno\nn\n{}\ncarrier pigeon\n\n\n", home.path("notes").display());
    let said = on_a_terminal(&home, &["setup"], &typed);
    assert!(said.contains("Connect Claude Code?") && said.contains("research.folders in"), "{said}");
    assert!(said.contains("\"carrier pigeon\" is not a channel"), "{said}");
    assert_eq!(read(&home.path(".codex/config.toml")), CODEX);
    assert!(read(&home.path(".claude.json")).contains("matsu") && !home.path(".claude/settings.json").exists());
    let file = home.path(".config/matsu/config.toml");
    assert_eq!(read(&file), format!("[research]\nfolders = \"{}\"\n", home.path("notes").display()));
    // A second time adds a channel. Codex: no. Folders: none more. Notices. Write this: yes.
    let said = on_a_terminal(&home, &["setup"], "no\n\nntfy http://127.0.0.1:9/a-long-name\n\n");
    assert!(said.contains("notify.me in"), "{said}");
    let text = read(&file);
    assert!(
        text.starts_with("[research]\nfolders = ") && text.contains("\n\n[notify.me]\nkind = \"ntfy\"\n"),
        "{text}"
    );
    let tried = home.run(&["notify", "test", "me"]);
    assert!(tried.out.contains("me: not sent"), "the channel is known, and no server is there: {tried:?}");
    home.run(&["uninstall", "--yes"]).good();
    assert!(!file.exists(), "a file that setup made goes again");
}

#[test]
fn setup_asks_again_for_folders_that_cannot_be_written_and_adds_to_a_table_that_is_there() {
    let home = home();
    fs::create_dir_all(home.path("notes")).unwrap();
    fs::create_dir_all(home.path(".config/matsu/agents")).unwrap();
    let file = home.path(".config/matsu/config.toml");
    let before = "[research]\nstep_ms = 7\n[notify.me]\nkind = \"desktop\"\n";
    fs::write(&file, before).unwrap();
    let own = home.path(".config/matsu/agents/own.toml");
    fs::write(own, "name = \"own\"\ncommand = \"cat\"\nprompt = \"stdin\"\noutput = \"text\"\n").unwrap();
    // Both clients: no. Folders: one that is not there, then one that is. Write this: yes.
    let typed = format!("n\nn\n/no/such/folder\n{}\n\n", home.path("notes").display());
    let said = on_a_terminal(&home, &["setup"], &typed);
    assert!(said.contains("/no/such/folder is not a folder"), "{said}");
    assert!(said.lines().any(|line| line.contains("can be given work:") && line.contains("own")), "{said}");
    let folders = format!("folders = \"{}\"\n", home.path("notes").display());
    assert_eq!(read(&file), before.replacen("[research]\n", &format!("[research]\n{folders}"), 1));
    home.run(&["uninstall", "--yes"]).good();
    assert_eq!(read(&file), before);
    // A table that nothing can be added to, then no folders; nothing else is wished for.
    fs::write(&file, before.replace("[research]\nstep_ms", "research.step_ms")).unwrap();
    let typed = format!("n\nn\n{}\n\n", home.path("notes").display());
    let said = on_a_terminal(&home, &["setup"], &typed);
    assert!(said.contains("by hand") && said.contains("nothing to set up"), "{said}");
}

#[test]
fn the_first_time_on_a_terminal_is_setup() {
    let home = home();
    // Both clients: no. Folders and notices: none.
    let said = on_a_terminal(&home, &[], "n\nn\n\n\n");
    assert!(said.contains("Connect Claude Code?") && said.contains("nothing to set up."), "{said}");
    assert!(said.contains("Matsu runs slow work") && said.contains("Nothing is written before"), "{said}");
    assert_untouched(&home);
    // What keeps it from starting is not hidden behind the list of commands.
    let file = home.path(".config/matsu/config.toml");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "[server]\nprot = 1\n").unwrap();
    let (code, said) = typed_on_a_terminal(&home, &[], "");
    assert!(code == 1 && said.contains("did you mean server.port?") && !said.contains("Usage:"), "{said}");
    fs::remove_file(file).unwrap();
    // Without a terminal it is the list of commands, and nothing is asked.
    let listed = home.run(&[]);
    assert!(listed.code == 2 && listed.err.contains("Usage:") && listed.out.is_empty(), "{listed:?}");
}

#[test]
fn setup_without_a_client_says_so_and_what_to_do() {
    let home = Home::sqlite().with_variable("PATH", "/usr/bin:/bin");
    let said = home.run(&["setup", "--yes"]).good().out;
    assert!(said.contains("no AI client was found. Install one") && said.contains("`matsu mcp`"), "{said}");
    assert!(!said.contains("is connected") && said.contains("Look around: matsu demo"), "{said}");
}

#[test]
fn a_service_that_cannot_be_written_is_not_blamed_on_the_data_directory() {
    let home = home();
    fs::create_dir_all(home.path(".config")).unwrap();
    let Some(mut command) = as_an_ordinary_user(&home, &["service", "install", "--no-start"]) else { return };
    fs::set_permissions(home.path(".config"), fs::Permissions::from_mode(0o500)).unwrap();
    let refused = command.output().unwrap();
    fs::set_permissions(home.path(".config"), fs::Permissions::from_mode(0o700)).unwrap();
    let said = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(said.contains("cannot make the folder") && said.contains("systemd/user"), "{said}");
    assert!(!said.contains("--data-dir"), "no other data directory helps: {said}");
}

fn on_a_terminal(home: &Home, args: &[&str], typed: &str) -> String {
    let (code, said) = typed_on_a_terminal(home, args, typed);
    assert_eq!(code, 0, "{said}");
    said
}

/// With a terminal as its standard streams.
fn typed_on_a_terminal(home: &Home, args: &[&str], typed: &str) -> (i32, String) {
    let command = home.command(args);
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let line = words.map(|word| format!("'{}'", word.to_str().unwrap())).collect::<Vec<_>>().join(" ");
    let mut script = Command::new("script");
    script.args(["-qec", &line, "/dev/null"]).env_clear();
    for (name, value) in command.get_envs() {
        script.env(name, value.unwrap_or_default());
    }
    let mut child = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(typed.as_bytes()).unwrap();
    let mut said = String::new();
    child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    (child.wait().unwrap().code().unwrap_or(-1), said)
}

#[test]
fn uninstall_deletes_no_folder_that_is_not_a_store() {
    let home = home();
    let other = home.path("photos");
    fs::create_dir_all(&other).unwrap();
    fs::write(other.join("cat.jpg"), "cat").unwrap();
    let refused = run(home.bare(&["--data-dir", other.to_str().unwrap(), "uninstall", "--data", "--yes"]));
    assert!(refused.code == 1 && refused.err.contains("holds no store"), "{refused:?}");
    assert_eq!(read(&other.join("cat.jpg")), "cat");
}

#[test]
fn uninstall_with_data_ends_the_daemon_and_deletes_the_store() {
    let home = home();
    let daemon = home.serve();
    let gone = home.run_json(&["uninstall", "--data", "--yes"]);
    assert_eq!((&gone["daemon"]["daemon"], &gone["data_deleted"]), (&json!(true), &json!(true)), "{gone}");
    assert!(!home.data_dir().exists());
    drop(daemon);
}

#[test]
fn a_home_that_cannot_be_written_is_named_and_nothing_stays_behind() {
    let home = home();
    let Some(mut command) = as_an_ordinary_user(&home, &["setup", "--yes"]) else { return };
    fs::set_permissions(home.path(".codex"), fs::Permissions::from_mode(0o500)).unwrap();
    let refused = command.output().unwrap();
    fs::set_permissions(home.path(".codex"), fs::Permissions::from_mode(0o700)).unwrap();
    let said = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(said.contains("nothing was changed") && said.contains(".codex"), "{said}");
    // Claude Code comes first and was written before Codex could not be.
    assert_untouched(&home);
    assert!(!home.data_dir().exists(), "no record was left");
    let again = command.output().unwrap();
    assert!(again.status.success(), "with a folder that can be written to: {again:?}");
    assert!(read(&home.path(".claude.json")).contains("mcpServers"));
}

/// Root may write everywhere, so root starts the program as another user, who owns this home from then on. `None`:
/// that is not possible here, and it was said.
fn as_an_ordinary_user(home: &Home, args: &[&str]) -> Option<Command> {
    if !rustix::process::getuid().is_root() {
        return Some(home.command(args));
    }
    let program = home.path("program");
    fs::copy(env!("CARGO_BIN_EXE_matsu"), &program).unwrap();
    let given = Command::new("chown").args(["-R", "-h", "65534:65534"]).arg(home.path("")).status();
    let user = ["--reuid", "65534", "--regid", "65534", "--clear-groups", "--"];
    let mut command = Command::new("setpriv");
    command.args(user);
    let can_change = Command::new("setpriv").args(user).arg("true").status().is_ok_and(|status| status.success());
    if !can_change || !given.is_ok_and(|status| status.success()) {
        skipped("setup in a home that cannot be written to: no other user can be made to start it");
        return None;
    }
    let as_root = home.command(args);
    command.arg(program).args(as_root.get_args()).env_clear();
    command.envs(as_root.get_envs().filter_map(|(name, value)| Some((name, value?))));
    Some(command)
}

#[test]
fn upgrade_reads_the_release_page_only_on_request() {
    let home = home();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/a/matsu", listener.local_addr().unwrap());
    let page = std::thread::spawn(move || {
        let mut asked = [0; 512];
        let mut bytes = 0;
        for version in ["9.8.7", "9.8.7", "0.0.1"] {
            let (mut stream, _) = listener.accept().unwrap();
            bytes = stream.read(&mut asked).unwrap();
            let found = format!("HTTP/1.1 302 Found\r\nlocation: /a/matsu/releases/tag/v{version}\r\n");
            stream.write_all(format!("{found}content-length: 0\r\nconnection: close\r\n\r\n").as_bytes()).unwrap();
        }
        String::from_utf8_lossy(&asked[..bytes]).into_owned()
    });
    let home = home.with_variable("MATSU_UPGRADE_REPOSITORY", &address);
    let quiet = home.run_json(&["upgrade"]);
    assert_eq!((&quiet["newest"], &quiet["version"]), (&json!(null), &json!(env!("CARGO_PKG_VERSION"))));
    let checked = home.run_json(&["upgrade", "--check"]);
    assert_eq!(checked["newest"], "9.8.7", "{checked}");
    let newer = home.run(&["upgrade", "--check"]).good();
    assert!(newer.out.contains("Newest release: 9.8.7. Upgrade with:"), "{}", newer.out);
    let older = home.run(&["upgrade", "--check"]).good();
    assert!(older.out.contains("This program is newer") && !older.out.contains("Upgrade with"), "{}", older.out);
    assert!(page.join().unwrap().starts_with("GET /a/matsu/releases/latest "));
    let silent = home.run(&["upgrade", "--check"]);
    assert!(silent.code == 1 && silent.out.contains("is unknown"), "{silent:?}");
}

#[test]
fn a_demonstration_that_is_kept_fills_the_store_each_time() {
    let home = Home::sqlite();
    let daemon = home.serve();
    for times in 1..=2 {
        let done = home.run(&["demo", "--keep"]).good();
        assert!(done.out.contains("matsu open"), "{}", done.out);
        let tasks = home.run_json(&["tasks"]);
        let research = tasks["items"].as_array().unwrap().iter().filter(|task| task["kind"] == "research").count();
        assert_eq!(research, times, "{tasks}");
    }
    assert!(home.data("demo/documents/waiting-lab.md").exists());
    drop(daemon);
}
