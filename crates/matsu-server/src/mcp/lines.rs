//! MCP frames on a byte stream: one JSON text per line.
//!
//! The SDK drops what it cannot read, and a client that sent such a request waits for ever. Here every line is answered
//! that asks for an answer, with the protocol's own error; what asks for none is dropped, and the log says so.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use matsu_core::clock::Clock;
use matsu_core::limits::FRAME_BYTES_MAX;
use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorCode,
    ErrorData, JsonRpcRequest, JsonRpcVersion2_0, RequestId,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde::Deserialize;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use super::bounded_lines::{BoundedLines, Line};
use super::direct_calls::DirectCalls;

/// How long calls whose connection is over may take to answer.
const LAST_ANSWERS_MAX: Duration = Duration::from_secs(2);

pub(super) struct Lines<R, W> {
    reader: BoundedLines<R>,
    writer: Arc<Mutex<Option<Writer<W>>>>,
    /// Calls that are run here; without it the SDK runs all.
    calls: Option<DirectCalls>,
    /// Answers that are not handed to the writer yet, and whether the writer has all of the last one behind it. A
    /// reader may be dropped at any await; what it owes must outlive it.
    owed: VecDeque<TxJsonRpcMessage<RoleServer>>,
    unsent: bool,
    /// Cancelled when nothing more can be read: the other side is gone, or has closed its output.
    ended: CancellationToken,
}

/// A writer that is dropped in the middle of a line leaves the rest to the next one.
struct Writer<W> {
    to: W,
    pending: Vec<u8>,
}

/// The part of a frame that says whether an answer is expected, and to what.
#[derive(Deserialize)]
struct Head {
    id: Option<RequestId>,
    method: Option<String>,
}

impl<R: AsyncRead + Send + Unpin, W: AsyncWrite + Send + Unpin + 'static> Lines<R, W> {
    pub fn new(reader: R, writer: W) -> Self {
        let writer = Arc::new(Mutex::new(Some(Writer { to: writer, pending: Vec::new() })));
        Self {
            reader: BoundedLines::new(reader),
            writer,
            calls: None,
            owed: VecDeque::new(),
            unsent: false,
            ended: CancellationToken::new(),
        }
    }

    /// Runs tool calls itself.
    pub fn with_calls(self, calls: DirectCalls) -> Self {
        Self { calls: Some(calls), ..self }
    }

    /// Cancelled when nothing more can be read.
    pub fn ended(&self) -> CancellationToken {
        self.ended.clone()
    }

    /// Once awaited, nothing more is written: later messages are dropped.
    pub fn hanging_up(&self) -> impl Future<Output = ()> + Send + 'static {
        let writer = Arc::clone(&self.writer);
        async move { drop(writer.lock().await.take()) }
    }

    /// Sends what is owed; `None` if the stream is closed. Calls go on meanwhile, also if the client reads nothing.
    async fn pay(&mut self) -> Option<()> {
        if self.owed.is_empty() && !self.unsent {
            return Some(());
        }
        let Self { writer, calls, owed, unsent, .. } = self;
        let paid = async {
            let mut writer = writer.lock().await;
            let writer = writer.as_mut()?;
            while let Some(answer) = owed.pop_front() {
                *unsent = true;
                writer.push(&answer).ok()?;
            }
            writer.drain().await.ok()?;
            *unsent = false;
            Some(())
        };
        match calls {
            Some(calls) => calls.beside(paid).await,
            None => paid.await,
        }
    }

    /// The next line. Until it comes, calls are run, and what they answer is sent. `None`: no line comes any more and
    /// every call is answered, or the stream is closed.
    async fn next_line(&mut self) -> Option<Line> {
        loop {
            self.pay().await?;
            let Self { reader, calls, owed, ended, .. } = self;
            tokio::select! {
                biased;
                Some(answer) = next_answer(calls) => owed.push_back(answer),
                line = reader.next(), if !ended.is_cancelled() => match line {
                    Ok(Line::End) => ended.cancel(),
                    Ok(line) => return Some(line),
                    Err(error) => {
                        tracing::debug!(%error, "reading from the client failed");
                        ended.cancel();
                    }
                },
                else => return None,
            }
        }
    }

    /// What the SDK has to do with a message; `None`: it is a call that is run here.
    fn sorted(&mut self, message: RxJsonRpcMessage<RoleServer>) -> Option<RxJsonRpcMessage<RoleServer>> {
        let Some(calls) = &mut self.calls else { return Some(message) };
        match message {
            ClientJsonRpcMessage::Request(JsonRpcRequest { id, request, .. })
                if matches!(request, ClientRequest::CallToolRequest(_)) =>
            {
                let (request, id) = calls.start(request, id)?;
                Some(ClientJsonRpcMessage::request(request, id))
            }
            ClientJsonRpcMessage::Notification(note) => {
                if let ClientNotification::CancelledNotification(cancelled) = &note.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    calls.cancel(id);
                }
                Some(ClientJsonRpcMessage::Notification(note))
            }
            other => Some(other),
        }
    }
}

async fn next_answer(calls: &mut Option<DirectCalls>) -> Option<TxJsonRpcMessage<RoleServer>> {
    calls.as_mut()?.next().await
}

/// Reads frames until the stream ends: the messages among them as JSON, and the answers to what is none.
///
/// # Errors
/// A message cannot be written as JSON.
pub async fn read_all<R>(reader: R) -> io::Result<(Vec<Value>, Vec<u8>)>
where
    R: AsyncRead + Send + Unpin,
{
    let (mut messages, mut answers) = (Vec::new(), Vec::new());
    let mut lines = Lines::new(reader, io::Cursor::new(Vec::new()));
    while let Some(message) = lines.receive().await {
        messages.push(serde_json::to_value(message)?);
    }
    if let Some(writer) = lines.writer.lock().await.take() {
        answers.extend(writer.to.into_inner());
    }
    Ok((messages, answers))
}

/// What a line contains.
enum Parsed {
    Message(Box<RxJsonRpcMessage<RoleServer>>),
    /// It is no message, and the sender is answered with an error.
    Refused(Box<TxJsonRpcMessage<RoleServer>>),
    Nothing,
}

fn parse_line(line: &[u8]) -> Parsed {
    let text = line.trim_ascii();
    if text.is_empty() {
        return Parsed::Nothing;
    }
    if let Some(message) = tool_call(text) {
        return Parsed::Message(Box::new(message));
    }
    match serde_json::from_slice(text) {
        Ok(message) => Parsed::Message(Box::new(message)),
        Err(error) => refusal(text, &error).map_or(Parsed::Nothing, |refusal| Parsed::Refused(Box::new(refusal))),
    }
}

/// A tool call as the protocol wants it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolCall<'a> {
    #[serde(rename = "jsonrpc")]
    _version: JsonRpcVersion2_0,
    id: RequestId,
    #[serde(borrow)]
    method: Cow<'a, str>,
    params: CallToolRequestParams,
}

/// A plain tool call. The SDK copies a message several times and then tries one kind of request after the other. Most
/// messages are tool calls, so they are read directly. `None`: it is something else or not valid; the SDK reads it.
fn tool_call(text: &[u8]) -> Option<RxJsonRpcMessage<RoleServer>> {
    let ToolCall { id, method, mut params, .. } = serde_json::from_slice(text).ok()?;
    if method != "tools/call" {
        return None;
    }
    // The SDK keeps the metadata of a request beside its parameters.
    let meta = params.meta.take();
    let mut request = CallToolRequest::new(params);
    if let Some(meta) = meta {
        request.extensions.insert(meta);
    }
    Some(ClientJsonRpcMessage::request(ClientRequest::CallToolRequest(request), id))
}

fn too_long() -> TxJsonRpcMessage<RoleServer> {
    let message = format!("the message is too long: at most {FRAME_BYTES_MAX} bytes are accepted");
    TxJsonRpcMessage::<RoleServer>::error(ErrorData::invalid_request(message, None), None)
}

/// `None`: the sender expects no answer.
fn refusal(text: &[u8], error: &serde_json::Error) -> Option<TxJsonRpcMessage<RoleServer>> {
    // Only the head is looked at: what a frame nests too deeply to be read is skipped over, not followed.
    let head = serde_json::from_slice::<Head>(text).ok();
    let (id, method) = head.map_or((None, None), |head| (head.id, head.method));
    tracing::warn!(%error, method, bytes = text.len(), "a message from the client is not valid");
    if id.is_none() && method.is_some() {
        return None;
    }
    let is_json = error.is_data() || id.is_some() || serde_json::from_slice::<Value>(text).is_ok();
    let code = if is_json { ErrorCode::INVALID_REQUEST } else { ErrorCode::PARSE_ERROR };
    Some(TxJsonRpcMessage::<RoleServer>::error(
        ErrorData::new(code, format!("the message is not a JSON-RPC request: {error}"), None),
        id,
    ))
}

impl<R, W> Transport<RoleServer> for Lines<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let writer = Arc::clone(&self.writer);
        async move {
            match writer.lock().await.as_mut() {
                Some(writer) => {
                    writer.push(&item)?;
                    writer.drain().await
                }
                None => Err(io::ErrorKind::NotConnected.into()),
            }
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let parsed = match self.next_line().await? {
                Line::Whole(line) => parse_line(&line),
                Line::TooLong => Parsed::Refused(Box::new(too_long())),
                Line::End => Parsed::Nothing,
            };
            match parsed {
                Parsed::Message(message) => {
                    if let Some(message) = self.sorted(*message) {
                        return Some(message);
                    }
                }
                Parsed::Refused(refusal) => self.owed.push_back(*refusal),
                Parsed::Nothing => {}
            }
        }
    }

    /// Called when the connection is over for another reason than its end. Waits end with it, and what the calls then
    /// answer is still sent.
    async fn close(&mut self) -> Result<(), io::Error> {
        let last = async {
            while let Some(answer) = next_answer(&mut self.calls).await {
                self.owed.push_back(answer);
                if self.pay().await.is_none() {
                    break;
                }
            }
        };
        let _ = Clock::system().within(LAST_ANSWERS_MAX, last).await;
        self.writer.lock().await.take();
        Ok(())
    }
}

impl<W: AsyncWrite + Unpin> Writer<W> {
    fn push(&mut self, message: &TxJsonRpcMessage<RoleServer>) -> io::Result<()> {
        serde_json::to_writer(&mut self.pending, message)?;
        self.pending.push(b'\n');
        Ok(())
    }

    async fn drain(&mut self) -> io::Result<()> {
        while !self.pending.is_empty() {
            let written = self.to.write(&self.pending).await?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            self.pending.drain(..written);
        }
        self.to.flush().await
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::io::AsyncReadExt;

    use super::*;

    /// What comes back for these lines: how many messages were read, and every answer.
    async fn fed(lines: &str) -> (usize, Vec<Value>) {
        let (ours, mut theirs) = tokio::io::duplex(1 << 20);
        let mut transport = Lines::new(lines.as_bytes(), ours);
        let mut messages = 0;
        while transport.receive().await.is_some() {
            messages += 1;
        }
        transport.close().await.unwrap();
        let mut said = String::new();
        theirs.read_to_string(&mut said).await.unwrap();
        (messages, said.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
    }

    #[tokio::test]
    async fn a_request_that_is_nested_too_deeply_is_answered_by_its_id() {
        let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
        let bad = format!("{{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{deep}}}\n");
        let (messages, said) = fed(&format!("{bad}{{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"ping\"}}\n")).await;
        assert_eq!((messages, said.len()), (1, 1), "{said:?}");
        assert_eq!((&said[0]["id"], &said[0]["error"]["code"]), (&json!(7), &json!(-32600)), "{said:?}");
    }

    #[test]
    fn a_tool_call_is_read_as_the_sdk_reads_it() {
        for line in [
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}"#,
            r#"{"params":{"arguments":{"x":[1,2.5,null]},"name":"a","_meta":{"progressToken":7}},"method":"tools/call","id":"b","jsonrpc":"2.0"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","_meta":null,"more":1}}"#,
        ] {
            let read = tool_call(line.as_bytes()).map(|message| format!("{message:?}"));
            let sdk: RxJsonRpcMessage<RoleServer> = serde_json::from_str(line).unwrap();
            assert_eq!(read, Some(format!("{sdk:?}")), "{line}");
        }
    }

    #[test]
    fn what_is_not_a_plain_tool_call_is_left_to_the_sdk() {
        for line in [
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
            r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"a"}}"#,
            r#"{"jsonrpc":"1.0","id":1,"method":"tools/call","params":{"name":"a"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"},"result":null}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#,
        ] {
            assert!(tool_call(line.as_bytes()).is_none(), "{line}");
        }
    }

    #[tokio::test]
    async fn invalid_json_and_invalid_requests_are_distinguished() {
        for (line, code) in [("nonsense", -32700), ("{", -32700), ("[]", -32600), ("{}", -32600), ("null", -32600)] {
            let (messages, said) = fed(&format!("{line}\r\n")).await;
            assert_eq!((messages, said.len()), (0, 1), "{line}: {said:?}");
            assert_eq!(said[0]["error"]["code"], code, "{line}: {said:?}");
        }
    }

    #[tokio::test]
    async fn blank_lines_and_malformed_notifications_are_not_answered() {
        let strange = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":7}"#;
        let (_, said) = fed(&format!("\n  \r\n{strange}\n")).await;
        assert_eq!(said, Vec::<Value>::new());
    }

    #[tokio::test]
    async fn a_line_without_end_costs_no_memory_and_the_next_one_is_read() {
        let endless = "x".repeat(FRAME_BYTES_MAX + 5);
        let (messages, said) = fed(&format!("{endless}\n{{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"ping\"}}\n")).await;
        assert_eq!((messages, said.len()), (1, 1), "{said:?}");
        assert_eq!(said[0]["error"]["code"], -32600);
    }
}
