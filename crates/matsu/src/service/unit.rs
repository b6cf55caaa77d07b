//! The files of service managers. A stop of the service ends the daemon alone: runs have processes of their own.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

pub const SYSTEMD_NAME: &str = "matsu.service";
pub const LAUNCHD_NAME: &str = "dev.matsu.daemon";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Systemd,
    /// Written by the same code and not tried on a Mac yet.
    Launchd,
}

/// What the service starts.
pub struct Unit {
    pub program: String,
    pub arguments: Vec<String>,
    /// Where the service finds agents' programs: service managers know none of the shell's additions.
    pub path: String,
    pub log: String,
}

impl Kind {
    pub fn file(self, home: &Path, config: &Path) -> PathBuf {
        match self {
            Self::Systemd => config.join("systemd/user").join(SYSTEMD_NAME),
            Self::Launchd => home.join("Library/LaunchAgents").join(format!("{LAUNCHD_NAME}.plist")),
        }
    }

    pub fn start(self, file: &Path) -> Vec<Vec<String>> {
        match self {
            Self::Systemd => vec![
                words(&["systemctl", "--user", "daemon-reload"]),
                words(&["systemctl", "--user", "enable", "--now", SYSTEMD_NAME]),
                // Without it the service ends when the user logs out.
                words(&["loginctl", "enable-linger"]),
            ],
            Self::Launchd => vec![words(&["launchctl", "load", "-w", &file.display().to_string()])],
        }
    }

    pub fn stop(self, file: &Path) -> Vec<Vec<String>> {
        match self {
            Self::Systemd => vec![words(&["systemctl", "--user", "disable", "--now", SYSTEMD_NAME])],
            Self::Launchd => vec![words(&["launchctl", "unload", "-w", &file.display().to_string()])],
        }
    }

    pub fn after_removal(self) -> Vec<Vec<String>> {
        match self {
            Self::Systemd => vec![words(&["systemctl", "--user", "daemon-reload"])],
            Self::Launchd => Vec::new(),
        }
    }
}

fn words(of: &[&str]) -> Vec<String> {
    of.iter().map(|word| (*word).to_owned()).collect()
}

impl Unit {
    /// # Errors
    /// A path with a line break, which neither format can hold.
    pub fn text(&self, kind: Kind) -> Result<String> {
        let all = || self.arguments.iter().chain([&self.program, &self.path, &self.log]);
        ensure!(
            !all().any(|text| text.contains(['\n', '\r'])),
            "a path with a line break cannot be written into a service"
        );
        Ok(match kind {
            Kind::Systemd => self.systemd(),
            Kind::Launchd => self.launchd(),
        })
    }

    /// `KillMode=process`: supervisors of runs live on in the service's group. `OOMPolicy=continue`: a run that takes
    /// too much memory ends, the daemon does not.
    fn systemd(&self) -> String {
        let command: Vec<String> =
            std::iter::once(&self.program).chain(&self.arguments).map(|word| systemd_word(word)).collect();
        format!(
            "[Unit]\n\
             Description=Matsu: asynchronous work for AI agents\n\
             After=network.target\n\
             \n\
             [Service]\n\
             ExecStart={command}\n\
             Environment={path}\n\
             Restart=on-failure\n\
             KillMode=process\n\
             OOMPolicy=continue\n\
             TimeoutStopSec=20\n\
             UMask=0077\n\
             \n\
             [Install]\n\
             WantedBy=default.target\n",
            command = command.join(" "),
            path = systemd_word(&format!("PATH={}", self.path)),
        )
    }

    fn launchd(&self) -> String {
        let arguments: String = std::iter::once(&self.program)
            .chain(&self.arguments)
            .map(|word| format!("    <string>{}</string>\n", xml(word)))
            .collect();
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \
             \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n\
             <plist version=\"1.0\">\n\
             <dict>\n\
             \x20 <key>Label</key>\n  <string>{LAUNCHD_NAME}</string>\n\
             \x20 <key>ProgramArguments</key>\n  <array>\n{arguments}  </array>\n\
             \x20 <key>EnvironmentVariables</key>\n  <dict>\n    <key>PATH</key>\n    <string>{path}</string>\n  </dict>\n\
             \x20 <key>RunAtLoad</key>\n  <true/>\n\
             \x20 <key>KeepAlive</key>\n  <dict>\n    <key>SuccessfulExit</key>\n    <false/>\n  </dict>\n\
             \x20 <key>AbandonProcessGroup</key>\n  <true/>\n\
             \x20 <key>StandardErrorPath</key>\n  <string>{log}</string>\n\
             </dict>\n\
             </plist>\n",
            path = xml(&self.path),
            log = xml(&self.log),
        )
    }
}

/// One word of a systemd command line: quoted, with its own specifiers and variables switched off.
fn systemd_word(word: &str) -> String {
    let escaped = word.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%").replace('$', "$$");
    format!("\"{escaped}\"")
}

fn xml(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(program: &str) -> Unit {
        let arguments = words(&["--data-dir", "/home/a b/50%", "serve"]);
        Unit { program: program.to_owned(), arguments, path: "/usr/bin:/bin".to_owned(), log: "/x.log".to_owned() }
    }

    #[test]
    fn paths_with_spaces_and_signs_stay_one_word() {
        let text = unit("/opt/my $tools/mat\"su").text(Kind::Systemd).unwrap();
        let line = r#"ExecStart="/opt/my $$tools/mat\"su" "--data-dir" "/home/a b/50%%" "serve""#;
        assert!(text.contains(line), "{text}");
        assert!(unit("/a\nb").text(Kind::Systemd).is_err());
        let text = unit("/opt/<&>").text(Kind::Launchd).unwrap();
        assert!(text.contains("<string>/opt/&lt;&amp;&gt;</string>"), "{text}");
    }
}
