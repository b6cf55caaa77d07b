//! `agents.allow` opens sockets of the machine by name: those and no others, and the replies say so.

use std::os::unix::net::UnixListener;

use serde_json::json;

use super::{Yard, prepared, python};
use crate::home::Home;

fn both_are_there(home: &mut Home) {
    let (agent, bus) = (home.path("agent.sock"), home.path("bus.sock"));
    home.set("SSH_AUTH_SOCK", agent.to_str().unwrap());
    home.set("DBUS_SESSION_BUS_ADDRESS", &format!("unix:path={},guid=0", bus.display()));
}

fn agent_is_allowed(home: &mut Home) {
    both_are_there(home);
    let path = home.path(".config/matsu/config.toml");
    let settings = std::fs::read_to_string(&path).unwrap();
    std::fs::write(path, format!("{settings}allow = \"ssh-agent\"\n")).unwrap();
}

/// What a run has of the two sockets: the variable, and whether something answers there.
fn reaches(yard: &mut Yard) -> String {
    let sockets = ["agent.sock", "bus.sock"].map(|name| yard.home.path(name));
    let _listeners = sockets.each_ref().map(|socket| {
        let _ = std::fs::remove_file(socket);
        UnixListener::bind(socket).unwrap()
    });
    yard.home.give_away();
    yard.attack(&python(&format!(
        r#"
import os, socket
for name, path in (("agent", "{}"), ("bus", "{}")):
    try:
        socket.socket(socket.AF_UNIX).connect(path)
        print(name, "REACHED")
    except OSError as error:
        print(name, "refused", error)
print("variables", [name for name in ("SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS") if name in os.environ])
"#,
        sockets[0].display(),
        sockets[1].display()
    )))
}

#[test]
fn a_socket_is_there_for_runs_if_it_is_allowed_by_name() {
    prepared(&both_are_there, |yard| {
        let printed = reaches(yard);
        assert!(printed.contains("variables []"), "{}: {printed}", yard.show());
        // Fenced, a path that is known can be connected to: that is named as a gap.
        assert_eq!(
            printed.matches("refused").count(),
            if yard.is_sealed() { 2 } else { 0 },
            "{}: {printed}",
            yard.show()
        );
        assert!(!yard.listed().to_string().contains("agents.allow"));
    });
    prepared(&agent_is_allowed, |yard| {
        let printed = reaches(yard);
        assert!(printed.contains("variables ['SSH_AUTH_SOCK']"), "{}: {printed}", yard.show());
        assert!(printed.contains("agent REACHED"), "{}: {printed}", yard.show());
        assert_eq!(printed.contains("bus refused"), yard.is_sealed(), "{}: {printed}", yard.show());
        let begun = yard.start("project", "true", json!({}));
        for said in [&begun, &yard.listed()] {
            let gaps = said["not_covered"].to_string();
            assert!(gaps.contains("ssh-agent (agents.allow)") && !gaps.contains("keyring"), "{}: {said}", yard.show());
        }
        yard.end_of(&begun["task_id"]);
    });
}
