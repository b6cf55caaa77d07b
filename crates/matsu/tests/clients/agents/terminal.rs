//! A program in a terminal, typed to and watched. The terminal is made by `script`, which every Linux has.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::home::until;

pub struct Terminal {
    child: Child,
    keys: ChildStdin,
    screen: Arc<Mutex<Vec<u8>>>,
}

impl Terminal {
    /// Starts a command line of a shell in a folder, with this environment and nothing else.
    pub fn start(line: &str, folder: &Path, environment: &BTreeMap<String, String>) -> Self {
        let mut command = Command::new("script");
        command.args(["--quiet", "--flush", "--return", "--command"]);
        command.arg(format!("stty rows 40 cols 140; exec {line}")).arg("/dev/null");
        command.current_dir(folder).env_clear().envs(environment).env("TERM", "xterm-256color");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (keys, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let screen = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&screen);
        // Ends with the child's output.
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = output.read(&mut buffer) {
                seen.lock().unwrap().extend_from_slice(&buffer[..length]);
            }
        });
        Self { child, keys, screen }
    }

    /// Everything that was ever shown, with the terminal's own codes in it.
    pub fn shown(&self) -> String {
        String::from_utf8_lossy(&self.screen.lock().unwrap()).into_owned()
    }

    #[track_caller]
    pub fn wait_for(&self, text: &str, within: Duration) {
        until(text, within, || self.shown().contains(text).then_some(()));
    }

    /// One key.
    pub fn press(&mut self, key: u8) {
        self.keys.write_all(&[key]).and_then(|()| self.keys.flush()).unwrap();
    }

    /// How the program ended.
    #[track_caller]
    pub fn code(&mut self, within: Duration) -> Option<i32> {
        until("the program ends", within, || self.child.try_wait().unwrap()).code()
    }

    /// A line and the return key, apart: a line that comes in one piece with its end is taken for a pasted one.
    pub fn say(&mut self, line: &str) {
        self.keys.write_all(line.as_bytes()).and_then(|()| self.keys.flush()).unwrap();
        std::thread::sleep(Duration::from_millis(500));
        self.keys.write_all(b"\r").and_then(|()| self.keys.flush()).unwrap();
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // The terminal goes away with its maker, and whatever runs in it gets a signal.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let shown = self.shown();
            let tail = shown.char_indices().rev().nth(4_000).map_or(0, |(at, _)| at);
            eprintln!("--- the end of what the terminal showed:\n{}", &shown[tail..]);
        }
    }
}
