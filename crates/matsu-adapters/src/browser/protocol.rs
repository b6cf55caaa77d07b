//! The little of the DevTools protocol that a visit needs: JSON messages, each ended by a zero byte. Small because the
//! crates that know all of it take minutes to compile, and a visit asks eight questions.

use matsu_core::ports::fetcher::FetchError;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};

/// A page of eight million characters as JSON, with space to spare.
const MESSAGE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// One page of a browser.
pub struct BrowserPage<W = ChildStdin, R = ChildStdout> {
    input: W,
    output: BufReader<R>,
    id: Option<String>,
    /// The page's own frame, which has its target's name; documents of frames inside it are not the page.
    frame: Option<String>,
    last: u64,
    /// Where the last document was asked for, and what its server answered.
    asked_for: Option<String>,
    status: Option<u16>,
    /// Names of events that came while something else was waited for.
    seen: Vec<String>,
}

impl<W: AsyncWrite + Unpin, R: AsyncRead + Unpin> BrowserPage<W, R> {
    /// A new page of the browser behind these two pipes.
    ///
    /// # Errors
    /// The browser refused, or what it sent cannot be read.
    pub async fn open(input: W, output: R) -> Result<Self, FetchError> {
        let output = BufReader::new(output);
        let mut session =
            Self { input, output, id: None, frame: None, last: 0, asked_for: None, status: None, seen: Vec::new() };
        let made = session.ask("Target.createTarget", json!({"url": "about:blank"})).await?;
        let target = json!({"targetId": made["targetId"], "flatten": true});
        let attached = session.ask("Target.attachToTarget", target).await?;
        session.frame = made["targetId"].as_str().map(str::to_owned);
        session.id = attached["sessionId"].as_str().map(str::to_owned);
        Ok(session)
    }

    /// The address of the last document that was asked for, redirects included.
    #[must_use]
    pub fn document_url(&self) -> Option<&str> {
        self.asked_for.as_deref()
    }

    /// The status that the last document came with.
    #[must_use]
    pub fn document_status(&self) -> Option<u16> {
        self.status
    }

    /// Asks and waits for the answer; events on the way are noted.
    ///
    /// # Errors
    /// As for [`BrowserPage::open`].
    pub async fn ask(&mut self, method: &str, params: Value) -> Result<Value, FetchError> {
        self.last += 1;
        let number = self.last;
        let mut message = json!({"id": number, "method": method, "params": params});
        if let Some(id) = &self.id {
            message["sessionId"] = json!(id);
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.input.write_all(&bytes).await.map_err(|_| gone())?;
        loop {
            let mut message = self.hear().await?;
            if message["id"] != json!(number) {
                continue;
            }
            if let Some(reason) = message["error"]["message"].as_str() {
                return Err(FetchError::Failed(format!("the browser refused {method}: {reason}")));
            }
            return Ok(message["result"].take());
        }
    }

    /// Waits until an event of this name has come.
    ///
    /// # Errors
    /// As for [`BrowserPage::open`].
    pub async fn wait_for(&mut self, event: &str) -> Result<(), FetchError> {
        while !self.seen.iter().any(|seen| seen == event) {
            self.hear().await?;
        }
        Ok(())
    }

    /// The value of an expression on the page; promises are waited for.
    ///
    /// # Errors
    /// As for [`BrowserPage::open`].
    pub async fn evaluate(&mut self, expression: &str) -> Result<Value, FetchError> {
        let params = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let mut answer = self.ask("Runtime.evaluate", params).await?;
        // Not by `[…]`, which panics if the browser answers with something else than an object.
        Ok(answer.pointer_mut("/result/value").map(Value::take).unwrap_or_default())
    }

    async fn hear(&mut self) -> Result<Value, FetchError> {
        let mut bytes = Vec::new();
        let mut bounded = (&mut self.output).take(MESSAGE_BYTES_MAX);
        let read = bounded.read_until(0, &mut bytes).await.map_err(|_| gone())?;
        if read == 0 || bytes.pop() != Some(0) {
            return Err(gone());
        }
        let message: Value = serde_json::from_slice(&bytes).map_err(|_| gone())?;
        if let Some(event) = message["method"].as_str() {
            self.note(event, &message["params"]);
        }
        Ok(message)
    }

    fn note(&mut self, event: &str, params: &Value) {
        let is_document = params["type"] == "Document" && params["frameId"].as_str() == self.frame.as_deref();
        if event == "Network.requestWillBeSent" && is_document {
            self.asked_for = params["request"]["url"].as_str().map(str::to_owned);
            self.status = None;
        }
        if event == "Network.responseReceived" && is_document {
            self.status = params["response"]["status"].as_u64().and_then(|status| u16::try_from(status).ok());
        }
        if event.starts_with("Page.") && !self.seen.iter().any(|seen| seen == event) {
            self.seen.push(event.to_owned());
        }
    }
}

fn gone() -> FetchError {
    FetchError::Failed("the browser ended before the page was read".to_owned())
}
