//! What a level does not stop is tried too: the table of SECURITY.md is true in both directions, each gap is named in
//! every reply, and the attacks of this suite are ones that work where nothing confines.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use super::{SECRET, Yard, at_every_level, at_levels, python};

/// What every reply and every list says about the level, which must be the same.
fn not_covered(yard: &mut Yard) -> Vec<String> {
    let begun = yard.start("project", "true", json!({}));
    let end = yard.end_of(&begun["task_id"]);
    let listed = yard.listed();
    for said in [&begun, &end, &listed] {
        assert_eq!((&said["confinement"], &said["not_covered"]), (&json!(yard.level), &begun["not_covered"]), "{said}");
    }
    let printed = yard.home.command(&["agents"]).output().unwrap();
    let printed = String::from_utf8(printed.stdout).unwrap();
    let doctor = yard.home.command(&["doctor", "--json"]).output().unwrap();
    let doctor = String::from_utf8(doctor.stdout).unwrap();
    let names = begun["not_covered"].as_array().unwrap().iter().map(|gap| gap.as_str().unwrap().to_owned());
    let names: Vec<String> = names.collect();
    for gap in &names {
        assert!(printed.contains(gap), "{}: matsu agents: {gap}: {printed}", yard.show());
        assert!(doctor.contains(gap), "{}: matsu doctor: {gap}: {doctor}", yard.show());
    }
    names
}

/// An attack that works at this level if, and only if, its gap is named.
fn assert_named(yard: &Yard, gaps: &[String], words: &str, works: bool) {
    let is_named = gaps.iter().any(|gap| gap.contains(words));
    assert_eq!(works, is_named, "{}: {words}: it works: {works}; named: {gaps:?}", yard.show());
}

#[test]
fn what_a_level_does_not_stop_is_named_and_nothing_else() {
    at_every_level(|yard| {
        let gaps = not_covered(yard);
        let notes = yard.home.path("elsewhere/notes.txt");
        std::fs::set_permissions(&notes, std::fs::Permissions::from_mode(0o600)).unwrap();
        let socket = yard.home.path("elsewhere/agent.sock");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        yard.home.give_away();
        let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let (daemon, _) = yard.home.relayed();
        let printed = yard.attack(&format!(
            "chmod 644 ../elsewhere/notes.txt; [ -d /proc/{daemon} ] && tr '\\0' ' ' < /proc/{daemon}/cmdline; echo
             cat /etc/shadow\n{}",
            python(&format!(
                r#"
import os, signal, socket
def reach(name, family, address):
    try:
        sock = socket.socket(family)
        sock.settimeout(5)
        sock.connect(address)
        print("REACHED", name)
    except OSError as error:
        print("refused", name, error)
reach("path", socket.AF_UNIX, "{}")
reach("network", socket.AF_INET, ("127.0.0.1", {}))
try:
    os.kill({daemon}, 0)
    print("REACHED signal")
except OSError as error:
    print("refused signal", error)
"#,
                socket.display(),
                tcp.local_addr().unwrap().port()
            ))
        ));
        let is_open = std::fs::metadata(&notes).unwrap().permissions().mode() & 0o777 == 0o644;
        assert_named(yard, &gaps, "modes, times", is_open);
        assert_named(yard, &gaps, "the list of processes", printed.contains("serve"));
        assert_named(yard, &gaps, "sockets of other programs in the file system", printed.contains("REACHED path"));
        assert_named(yard, &gaps, "signals", printed.contains("REACHED signal"));
        assert_named(yard, &gaps, "the network", printed.contains("REACHED network"));
        // An ordinary user cannot read that file anyway.
        if yard.is_root {
            assert_named(yard, &gaps, "files below /etc", printed.contains("root:"));
        }
    });
}

/// Fenced, such a folder is allowed entry by entry; an entry that is a link allows nothing.
#[test]
fn new_names_directly_in_a_fenced_repository_cannot_be_made() {
    at_every_level(|yard| {
        std::fs::create_dir_all(yard.project.join("sub")).unwrap();
        std::os::unix::fs::symlink("../elsewhere", yard.project.join("out")).unwrap();
        std::os::unix::fs::symlink("../data", yard.project.join("data")).unwrap();
        let git = yard.home.of_its_user("git").current_dir(&yard.project).args(["init", "-q"]).status();
        assert!(git.unwrap().success());
        yard.home.give_away();
        let script = "echo x > new; echo x > sub/new; mkdir .git2; echo x > out/planted; cat out/notes.txt data/token";
        let printed = yard.attack_in("project", script, json!({ "mode": "workspace-write" }));
        assert_eq!(yard.project.join("new").exists(), yard.is_sealed(), "{}", yard.show());
        assert!(yard.project.join("sub/new").exists(), "{}", yard.show());
        assert!(!yard.home.path("elsewhere/planted").exists(), "{}: {printed}", yard.show());
        assert!(!printed.contains(SECRET) && !printed.contains(&yard.token()), "{}: {printed}", yard.show());
    });
}

/// The same attacks where nothing confines: they work, so what the levels stop is not stopped by something else.
#[test]
fn open_stops_none_of_them() {
    at_levels(&["open"], &|_| (), |yard| {
        let begun = yard.start("project", "true", json!({}));
        assert_eq!(begun["not_covered"], json!(["anything that the user who runs Matsu can do"]), "{begun}");
        let (daemon, _) = yard.home.relayed();
        let printed = yard.attack(&format!(
            "cat ../data/token ../.ssh/id_ed25519; echo planted > ../elsewhere/planted; ls -d /proc/{daemon}/fd/0
             ls ../data/runs; kill -0 {daemon} && echo CAN SIGNAL; tr '\\0' '\\n' < /proc/{daemon}/environ"
        ));
        let shown = yard.show();
        assert!(printed.contains(&yard.token()) && printed.contains(SECRET), "{shown}: {printed}");
        assert!(printed.contains("CAN SIGNAL") && printed.contains("HOME="), "{shown}: {printed}");
        let mut planted = String::new();
        std::fs::File::open(yard.home.path("elsewhere/planted")).unwrap().read_to_string(&mut planted).unwrap();
        assert_eq!(planted, "planted\n", "{shown}");
        assert_ne!(yard.end_of(&begun["task_id"])["status"], Value::Null);
    });
}
