//! What the tests of the decoders share: recorded lines in, what was said out.

use super::{Decoded, Decoder};

pub fn feed(decoder: &mut dyn Decoder, lines: &str) -> Vec<Decoded> {
    let events = lines.lines().filter(|line| !line.trim().is_empty());
    let events = events.map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")));
    events.flat_map(|event: serde_json::Value| decoder.event(&event)).collect()
}

pub fn lines(decoded: &[Decoded]) -> Vec<&str> {
    decoded
        .iter()
        .filter_map(|decoded| if let Decoded::Line(line) = decoded { Some(line.as_str()) } else { None })
        .collect()
}
