//! Server-sent events: however the bytes are cut, the same events come out, and they are those of the standard.

use futures_util::StreamExt;
use matsu_adapters::providers::{Fault, Framing, pieces};

use crate::input::{at_once, choice};

pub fn run(data: &[u8]) {
    let (size, data) = choice(data);
    let whole = read(Framing::ServerSentEvents, data, data.len());
    assert_eq!(read(Framing::ServerSentEvents, data, size), whole, "the cut changes the events");
    if let Ok(text) = std::str::from_utf8(data) {
        let found: Vec<String> = whole.into_iter().flatten().collect();
        assert_eq!(found, standard(text), "other events than those of the standard");
    }
}

/// What comes out of a stream of these bytes, in chunks of that many.
pub fn read(framing: Framing, data: &[u8], size: usize) -> Vec<Result<String, Fault>> {
    let chunks: Vec<Result<Vec<u8>, Fault>> = data.chunks(size.max(1)).map(|chunk| Ok(chunk.to_vec())).collect();
    at_once(pieces(framing, Box::pin(futures_util::stream::iter(chunks))).collect())
}

/// The data of all whole events that have some, read the way the standard describes it.
fn standard(text: &str) -> Vec<String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n").replace('\r', "\n");
    let (mut found, mut data): (Vec<String>, Vec<&str>) = (Vec::new(), Vec::new());
    let Some(end) = text.rfind('\n') else { return found };
    for line in text[..end].split('\n') {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        match (line, field) {
            ("", _) => found.push(std::mem::take(&mut data).join("\n")),
            (_, "data") => data.push(value.strip_prefix(' ').unwrap_or(value)),
            _ => {}
        }
    }
    found.retain(|data| !data.is_empty());
    found
}
