//! MCP servers as child processes: Matsu as its users start it, FastMCP and the TypeScript SDK with one tool in memory.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::bench::Bench;
use crate::mcp_client::{HttpClient, StdioClient};

const START_MAX: Duration = Duration::from_secs(60);

/// Who takes part. The first is what the others are compared with.
#[derive(Clone, Copy, Eq, PartialEq)]
pub enum Contender {
    MatsuRelay,
    MatsuAlone,
    Typescript,
    FastMcp,
}

impl Contender {
    pub const STDIO: [Self; 4] = [Self::MatsuRelay, Self::MatsuAlone, Self::Typescript, Self::FastMcp];
    /// Over HTTP there is one Matsu: the daemon itself.
    pub const HTTP: [Self; 3] = [Self::MatsuRelay, Self::Typescript, Self::FastMcp];

    pub fn name(self) -> &'static str {
        match self {
            Self::MatsuRelay => "Matsu",
            Self::MatsuAlone => "Matsu --no-daemon",
            Self::Typescript => "TypeScript SDK",
            Self::FastMcp => "FastMCP",
        }
    }
}

/// Where the servers that are not ours were installed.
pub struct McpPeers {
    folder: PathBuf,
}

impl McpPeers {
    pub fn install() -> Result<Self> {
        let own = std::env::current_exe()?;
        let folder = own.ancestors().nth(2).context("the binary is not in a target directory")?.join("mcp-peers");
        eprintln!("installing FastMCP and the TypeScript SDK");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("mcp/install");
        let status = Command::new(script).arg(&folder).status()?;
        ensure!(status.success(), "the MCP peers cannot be installed");
        Ok(Self { folder })
    }

    fn command(&self, contender: Contender, program: &Path, data: &Path) -> Command {
        match contender {
            Contender::MatsuRelay | Contender::MatsuAlone => {
                let mut command = Command::new(program);
                command.arg("--data-dir").arg(data).arg("mcp");
                if contender == Contender::MatsuAlone {
                    command.arg("--no-daemon");
                }
                command
            }
            Contender::Typescript => {
                let mut command = Command::new(self.folder.join("node_modules/.bin/node"));
                command.arg(self.folder.join("typescript_server.mjs")).arg("stdio");
                command
            }
            Contender::FastMcp => {
                let mut command = Command::new(self.folder.join("python/bin/python"));
                command.arg(self.folder.join("fastmcp_server.py")).arg("stdio");
                command
            }
        }
    }
}

/// A process that ends with its owner.
pub struct Running(Child);

impl Running {
    fn start(mut command: Command) -> Result<Self> {
        Ok(Self(command.stderr(Stdio::null()).spawn()?))
    }

    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    fn pipes(&mut self) -> Result<(ChildStdin, BufReader<ChildStdout>)> {
        let input = self.0.stdin.take().context("no input")?;
        Ok((input, BufReader::new(self.0.stdout.take().context("no output")?)))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Matsu's daemon on a fresh store with one task in it.
pub struct Daemon {
    pub process: Running,
    program: PathBuf,
    pub data: PathBuf,
    pub address: SocketAddr,
    pub token: String,
    pub task: String,
}

impl Daemon {
    pub fn launch(bench: &Bench) -> Result<Self> {
        Self::launch_with(bench, "")
    }

    /// With this configuration.
    pub fn launch_with(bench: &Bench, config: &str) -> Result<Self> {
        Self::launch_with_agent(bench, config, None)
    }

    /// With a definition of an agent beside the configuration: its name, and its text.
    pub fn launch_with_agent(bench: &Bench, config: &str, agent: Option<(&str, &str)>) -> Result<Self> {
        let (data, home) = (bench.fresh_folder()?, bench.fresh_folder()?);
        let file = home.join("config.toml");
        std::fs::write(&file, config)?;
        if let Some((name, definition)) = agent {
            std::fs::create_dir(home.join("agents"))?;
            std::fs::write(home.join("agents").join(format!("{name}.toml")), definition)?;
        }
        let program = bench.processes.server()?.to_owned();
        let mut command = Command::new(&program);
        command.arg("--data-dir").arg(&data).arg("--config").arg(&file);
        command.args(["serve", "--test-jobs", "--port", "0"]);
        let process = Running::start_silent(command)?;
        let announced: Value = serde_json::from_str(&wait_for_file(&data.join("server.json"))?)?;
        let address = announced["address"].as_str().context("no address")?.trim_start_matches("http://").parse()?;
        let token = std::fs::read_to_string(data.join("token"))?.trim().to_owned();
        let mut daemon = Self { process, program, data, address, token, task: String::new() };
        let body = "{\"jobs\":[{\"kind\":\"sleep\",\"input\":{\"ms\":3600000}}]}";
        let made = daemon.http()?.post("/test/tasks", &[], body)?;
        daemon.task = made["task"]["task_id"].as_str().context("no task was made")?.to_owned();
        Ok(daemon)
    }

    pub fn http(&self) -> Result<HttpClient> {
        HttpClient::connect(self.address, Some(self.token.clone()))
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // A daemon that is only killed leaves its runs alive, and they start another.
        let mut command = Command::new(&self.program);
        command.arg("--data-dir").arg(&self.data).args(["shutdown", "--runs"]);
        let _ = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
}

impl Running {
    fn start_silent(mut command: Command) -> Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::null());
        Self::start(command)
    }
}

fn wait_for_file(path: &Path) -> Result<String> {
    let began = Instant::now();
    loop {
        if let Ok(text) = std::fs::read_to_string(path) {
            return Ok(text);
        }
        ensure!(began.elapsed() < START_MAX, "the server did not start");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A server on pipes, not asked anything yet.
pub fn start_stdio(bench: &Bench, contender: Contender, data: &Path) -> Result<(Running, StdioClient)> {
    let mut command = bench.mcp_peers()?.command(contender, bench.processes.server()?, data);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut running = Running::start(command)?;
    let (input, output) = running.pipes()?;
    Ok((running, StdioClient::new(input, output)))
}

/// A peer behind HTTP, once it takes connections.
pub fn start_http(bench: &Bench, contender: Contender) -> Result<(Running, HttpClient)> {
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let peers = &bench.mcp_peers()?.folder;
    let (program, server) = match contender {
        Contender::FastMcp => (peers.join("python/bin/python"), peers.join("fastmcp_server.py")),
        _ => (peers.join("node_modules/.bin/node"), peers.join("typescript_server.mjs")),
    };
    let mut command = Command::new(program);
    command.arg(server).arg("http").arg(address.port().to_string());
    let running = Running::start_silent(command)?;
    let began = Instant::now();
    while TcpStream::connect(address).is_err() {
        ensure!(began.elapsed() < START_MAX, "{} did not start", contender.name());
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok((running, HttpClient::connect(address, None)?))
}

/// A line, and that it was written at once.
pub fn write_line(to: &mut impl Write, line: &str) -> Result<()> {
    to.write_all(line.as_bytes())?;
    to.write_all(b"\n")?;
    Ok(to.flush()?)
}

pub fn read_line(from: &mut impl BufRead) -> Result<String> {
    let mut line = String::new();
    ensure!(from.read_line(&mut line)? > 0, "the server ended");
    Ok(line)
}
