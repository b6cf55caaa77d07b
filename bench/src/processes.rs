//! Builds the contenders that have lock files of their own, and runs one process per measurement.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use anyhow::{Context, Result, bail, ensure};
use bench_peer::{Answer, Order};

use crate::matsu_side;

/// Each program is built when a row first asks for it.
pub struct Processes {
    own: PathBuf,
    target: PathBuf,
    matsu: OnceLock<PathBuf>,
    honker: OnceLock<PathBuf>,
    sqlx: OnceLock<PathBuf>,
    reader: OnceLock<PathBuf>,
    server: OnceLock<PathBuf>,
}

impl Processes {
    pub fn prepare() -> Result<Self> {
        let own = std::env::current_exe()?;
        let target = own.ancestors().nth(2).context("the binary is not in a target directory")?.join("peers");
        let (matsu, honker, sqlx, reader, server) = Default::default();
        Ok(Self { own, target, matsu, honker, sqlx, reader, server })
    }

    /// Where what the harness builds and installs is kept.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Reads pages, judges pairs and searches documents, with Matsu's code and with the crates beside it.
    pub fn reader(&self) -> Result<&Path> {
        built(&self.reader, || build("reader", &self.target))
    }

    /// The product's own program, for the rows that go over HTTP.
    pub fn server(&self) -> Result<&Path> {
        built(&self.server, || build_server(&self.target))
    }

    /// Never fails the run: a peer that breaks is a line in the report.
    pub fn run(&self, order: &Order) -> Answer {
        self.try_run(order).unwrap_or_else(|error| Answer::Failed { error: format!("{error:#}") })
    }

    fn try_run(&self, order: &Order) -> Result<Answer> {
        let mut command = self.command(&order.peer)?;
        let output = command.arg(serde_json::to_string(order)?).stderr(Stdio::piped()).output()?;
        if !output.status.success() {
            let stderr = String::from_utf8_lossy(&output.stderr);
            bail!("{} ended with {}: {}", order.peer, output.status, stderr.lines().last().unwrap_or("no message"));
        }
        serde_json::from_slice(&output.stdout).context("the answer does not parse")
    }

    fn command(&self, peer: &str) -> Result<Command> {
        if matsu_side::is_matsu(peer) {
            return Ok(Command::new(built(&self.matsu, || build("matsu", &self.target))?));
        }
        match peer.split(['-', '_', ' ']).next() {
            Some("bare") => {
                let mut command = Command::new(&self.own);
                command.arg("__order");
                Ok(command)
            }
            Some("honker") => Ok(Command::new(built(&self.honker, || build("honker", &self.target))?)),
            Some("apalis" | "graphile") => Ok(Command::new(built(&self.sqlx, || build("sqlx", &self.target))?)),
            _ => bail!("no process answers for {peer}"),
        }
    }
}

fn built(program: &OnceLock<PathBuf>, build: impl FnOnce() -> Result<PathBuf>) -> Result<&Path> {
    if program.get().is_none() {
        let _ = program.set(build()?);
    }
    program.get().map(PathBuf::as_path).context("no program")
}

fn build(name: &str, target: &Path) -> Result<PathBuf> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers").join(name).join("Cargo.toml");
    cargo_build(name, &manifest, target, |_| {})?;
    Ok(target.join("release").join(format!("bench-peer-{name}")))
}

/// Built as `scripts/dist.sh` builds it, with its linker where that is used; or the finished program that
/// `MATSU_BINARY` names.
fn build_server(target: &Path) -> Result<PathBuf> {
    if let Some(program) = std::env::var_os("MATSU_BINARY") {
        return std::path::absolute(program).context("MATSU_BINARY is no path");
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    cargo_build("server", &root.join("Cargo.toml"), target, |cargo| {
        cargo.args(["--package", "matsu"]);
        if cfg!(all(target_arch = "x86_64", target_os = "linux")) {
            cargo.env("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER", root.join("scripts/dist/linker.sh"));
        }
    })?;
    Ok(target.join("release").join("matsu"))
}

fn cargo_build(what: &str, manifest: &Path, target: &Path, more: impl FnOnce(&mut Command)) -> Result<()> {
    eprintln!("building {what}");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--release", "--locked", "--quiet", "--manifest-path"]).arg(manifest);
    cargo.arg("--target-dir").arg(target);
    more(&mut cargo);
    ensure!(cargo.status()?.success(), "{what} does not build");
    Ok(())
}
