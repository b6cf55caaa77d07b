//! Answers of models in every wire format, and refusals.

use matsu_adapters::providers::{Fault, Framing, Progress, Reader, WIRES, Wire, in_stream, of_status};
use matsu_core::clock::Timestamp;
use matsu_core::history::{Entry, Maker};
use matsu_core::ports::provider::{ModelEvent, ModelTurn};

use super::sse;
use crate::input::{choice, first_line};

const NOW: Timestamp = Timestamp::from_millis(1_794_704_523_000);

pub fn run(data: &[u8]) {
    let (which, data) = choice(data);
    match WIRES.get(which % (WIRES.len() + 1)) {
        Some(wire) => answer(*wire, data),
        None => refusal(data),
    }
}

fn answer(wire: &dyn Wire, data: &[u8]) {
    let (size, data) = choice(data);
    let whole = decode(wire, data, data.len());
    assert_eq!(decode(wire, data, size), whole, "the cut changes the answer");
    let (_, Ok(turn)) = whole else { return };
    // The answer of a model goes back to it, and to others, with the next request.
    for other in WIRES {
        let maker = Maker { wire: other.name().to_owned(), model: "m".to_owned() };
        let said = Entry::assistant("a", turn.items.clone(), NOW).made_by(maker.clone());
        let history = [Entry::user("question", NOW), said, Entry::user("and now?", NOW)];
        let sent = other.format_history(&history, &Reader { name: "a".to_owned(), maker });
        assert!(sent.is_array() || sent.is_object(), "a history that is no list of messages");
    }
}

/// What was shown on the way, and the turn.
fn decode(wire: &dyn Wire, data: &[u8], size: usize) -> (Vec<ModelEvent>, Result<ModelTurn, Fault>) {
    let mut decoder = wire.decoder();
    let mut shown = Vec::new();
    for piece in sse::read(wire.framing(), data, size) {
        let progress = match piece {
            Ok(piece) => decoder.feed(&piece, &mut shown),
            Err(fault) => Err(fault),
        };
        match progress {
            Ok(Progress::More) => {}
            Ok(Progress::Complete) => break,
            Err(fault) => return (joined(shown), Err(fault)),
        }
    }
    (joined(shown), decoder.finish())
}

/// No decoder ends a turn by an event: that is for the exchange, after the last piece.
fn joined(shown: Vec<ModelEvent>) -> Vec<ModelEvent> {
    assert!(!shown.iter().any(|event| matches!(event, ModelEvent::End(_))), "an end before the end");
    shown
}

/// The first line is the header `retry-after`, the rest the body.
fn refusal(data: &[u8]) {
    let (status, data) = choice(data);
    let (after, body) = first_line(data);
    let status = [400, 401, 403, 404, 408, 413, 429, 500, 502, 503, 529, 302][status % 12];
    let fault = of_status(status, Some(&after), &String::from_utf8_lossy(body), NOW);
    assert!(fault.message.chars().count() <= 600, "words without a bound");
    if let Ok(error) = serde_json::from_slice(body) {
        let _ = in_stream(&error);
    }
    let lines = sse::read(Framing::Lines, body, body.len());
    assert_eq!(sse::read(Framing::Lines, body, 3), lines, "the cut changes the lines");
}
