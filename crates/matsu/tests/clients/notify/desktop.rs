//! The desktop for real: `notify-send` on a bus of the test's own, shown by dunst.

use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::{SOON, home_with, start};
use crate::home::until;

struct Desktop {
    session: Child,
    folder: tempfile::TempDir,
}

impl Desktop {
    /// A bus on which nothing shows notices yet.
    fn new() -> Self {
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        let made = Command::new(root.join("scripts/setup.sh")).arg("desktop").output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("dbus-run-session");
        command.arg("--").arg(root.join("tests/clients/desktop.sh")).arg(folder.path());
        let session = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let desktop = Self { session, folder };
        until("there is a bus", SOON, || Some(desktop.read("bus")).filter(|bus| bus.ends_with('\n')));
        desktop
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(name)).unwrap_or_default()
    }

    fn show_notices(&mut self) {
        self.session.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    }
}

impl Drop for Desktop {
    fn drop(&mut self) {
        // Its script ends what it started when its input ends.
        drop(self.session.stdin.take());
        let _ = self.session.wait();
    }
}

#[test]
fn dunst_shows_what_came_while_no_desktop_was_there_and_text_is_no_markup() {
    let mut desktop = Desktop::new();
    let mut home = home_with("[notify.screen]\nkind = \"desktop\"\n");
    home.set("DBUS_SESSION_BUS_ADDRESS", desktop.read("bus").trim());
    let daemon = home.serve();
    start(&daemon, "script", "echo 'if a < b & c: <b>bold</b>'");
    until("that nothing shows notices is noticed", SOON, || {
        daemon.printed().contains("a notice could not be sent").then_some(())
    });
    desktop.show_notices();
    let shown =
        until("it is shown", SOON, || Some(desktop.read("shown")).filter(|shown| shown.contains("script_count")));
    assert!(shown.contains("appname: 'Matsu'") && shown.contains("summary: 'done: script: echo"), "{shown}");
    // As dunst lays it out: what an agent wrote is shown as it is written.
    assert!(shown.contains("if a &lt; b &amp; c: &lt;b&gt;bold&lt;/b&gt;"), "{shown}");
    assert!(shown.contains("urgency: NORMAL"), "{shown}");
}
