//! What a browser sends: WebSocket frames, messages of the DevTools protocol, requests to the proxy.

use matsu_adapters::browser::frames;
use matsu_adapters::browser::protocol::BrowserPage;
use matsu_adapters::browser::proxy::Wanted;

use crate::input::{Chunks, at_once, choice};

const BYTES_MAX: usize = 1_000;

pub fn run(data: &[u8]) {
    let (which, data) = choice(data);
    match which % 3 {
        0 => sockets(data),
        1 => at_once(visit(data)),
        _ => proxy(data),
    }
}

fn sockets(data: &[u8]) {
    let (size, data) = choice(data);
    let whole = messages(data, data.len());
    assert_eq!(messages(data, size), whole, "the cut changes the messages");
    let framed = frames::text(data);
    let back = at_once(frames::read(&mut framed.as_slice(), data.len()));
    assert!(back.is_ok_and(|back| back == data), "a text that changes on the way");
}

fn messages(data: &[u8], size: usize) -> Vec<Vec<u8>> {
    let mut stream = Chunks::new(data, size);
    let mut found = Vec::new();
    while let Ok(message) = at_once(frames::read(&mut stream, BYTES_MAX)) {
        assert!(message.len() <= BYTES_MAX, "a message without a bound");
        found.push(message);
    }
    found
}

/// Messages end with a zero byte; what is asked does not depend on them, and the bytes come to an end.
async fn visit(data: &[u8]) {
    let Ok(mut session) = BrowserPage::open(tokio::io::sink(), Chunks::new(data, data.len())).await else { return };
    let _ = session.wait_for("Page.loadEventFired").await;
    while session.evaluate("document.title").await.is_ok() {}
    let _ = (session.document_url(), session.document_status());
}

/// A head that is passed on has no end in its middle, and only its own site gets it.
fn proxy(data: &[u8]) {
    let Ok(head) = std::str::from_utf8(data) else { return };
    let Some(wanted) = Wanted::parse(head) else { return };
    assert!(matches!(wanted.url.scheme(), "http" | "https"), "{}", wanted.url);
    if let Some(forward) = wanted.forward {
        assert!(forward.ends_with("\r\nconnection: close\r\n\r\n"), "a connection that goes on");
        assert_eq!(forward.find("\r\n\r\n"), Some(forward.len() - 4), "two heads in one");
    }
}
