//! An MCP client that costs next to nothing: frames written by hand, one call at a time, in the era of 2026-07-28.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{ChildStdin, ChildStdout};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::peers::mcp_servers::{read_line, write_line};

const ERA: &str = "2026-07-28";
const ANSWER_MAX: Duration = Duration::from_secs(60);

/// A client that calls a server. Returns the result.
pub trait McpClient {
    fn ask(&mut self, method: &str, params: Value) -> Result<Value>;

    fn call(&mut self, task: &str) -> Result<()> {
        let params = json!({ "name": "get_task_status", "arguments": { "task_id": task } });
        let result = self.ask("tools/call", params)?;
        // A job that was handed in just now may not have begun.
        let status = result["structuredContent"]["status"].as_str();
        ensure!(matches!(status, Some("running" | "queued")), "an unexpected answer: {result}");
        Ok(())
    }
}

fn frame(id: u64, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": ERA,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "bench", "version": "1" },
    });
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

fn result(answer: &Value) -> Result<Value> {
    ensure!(answer["result"].is_object(), "refused: {answer}");
    Ok(answer["result"].clone())
}

pub struct StdioClient {
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    last_id: u64,
}

impl StdioClient {
    pub fn new(input: ChildStdin, output: BufReader<ChildStdout>) -> Self {
        Self { input, output, last_id: 0 }
    }
}

impl McpClient for StdioClient {
    fn ask(&mut self, method: &str, params: Value) -> Result<Value> {
        self.last_id += 1;
        write_line(&mut self.input, &frame(self.last_id, method, params).to_string())?;
        loop {
            let answer: Value = serde_json::from_str(&read_line(&mut self.output)?)?;
            if answer["id"] == self.last_id {
                return result(&answer);
            }
        }
    }
}

/// One connection that is kept.
pub struct HttpClient {
    stream: BufReader<TcpStream>,
    token: Option<String>,
    last_id: u64,
}

impl HttpClient {
    pub fn connect(address: SocketAddr, token: Option<String>) -> Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(ANSWER_MAX))?;
        Ok(Self { stream: BufReader::new(stream), token, last_id: 0 })
    }

    pub fn post(&mut self, path: &str, headers: &[(&str, &str)], body: &str) -> Result<Value> {
        let mut head = format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n", body.len());
        head.push_str("Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n");
        if let Some(token) = &self.token {
            head.push_str(&format!("Authorization: Bearer {token}\r\n"));
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        self.stream.get_mut().write_all(format!("{head}\r\n{body}").as_bytes())?;
        let body = self.body()?;
        let text = String::from_utf8_lossy(&body);
        let event =
            text.lines().filter_map(|line| line.strip_prefix("data:")).rfind(|data| data.contains("\"jsonrpc\""));
        serde_json::from_str(event.unwrap_or(&text)).with_context(|| format!("no JSON: {text}"))
    }

    fn body(&mut self) -> Result<Vec<u8>> {
        let status = self.line()?;
        ensure!(status.split(' ').nth(1).is_some_and(|code| code.starts_with('2')), "refused: {status}");
        let (mut length, mut is_chunked) = (None, false);
        loop {
            let line = self.line()?.to_ascii_lowercase();
            match line.split_once(':') {
                Some(("content-length", value)) => length = Some(value.trim().parse::<usize>()?),
                Some(("transfer-encoding", value)) => is_chunked = value.trim() == "chunked",
                Some(_) => {}
                None => break,
            }
        }
        let mut body = Vec::new();
        match length {
            Some(length) => self.exactly(length, &mut body)?,
            None if is_chunked => loop {
                let size = usize::from_str_radix(&self.line()?, 16)?;
                self.exactly(size, &mut body)?;
                self.line()?;
                if size == 0 {
                    break;
                }
            },
            None => bail!("an answer without an end"),
        }
        Ok(body)
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        ensure!(self.stream.read_line(&mut line)? > 0, "the server hung up");
        Ok(line.trim_end().to_owned())
    }

    fn exactly(&mut self, length: usize, body: &mut Vec<u8>) -> Result<()> {
        let read = (&mut self.stream).take(length as u64).read_to_end(body)?;
        ensure!(read == length, "the answer was cut off");
        Ok(())
    }
}

impl McpClient for HttpClient {
    fn ask(&mut self, method: &str, params: Value) -> Result<Value> {
        self.last_id += 1;
        let name = params["name"].as_str().unwrap_or_default().to_owned();
        let mut headers = vec![("MCP-Protocol-Version", ERA), ("Mcp-Method", method)];
        if !name.is_empty() {
            headers.push(("Mcp-Name", &name));
        }
        let answer = self.post("/mcp", &headers, &frame(self.last_id, method, params).to_string())?;
        result(&answer)
    }
}
