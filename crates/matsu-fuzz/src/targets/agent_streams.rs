//! What agents print: plain text, and the events of every program that has a decoder.

use matsu_adapters::agents::decoders::{self, Decoded, Decoder, Listens, Outcome};
use matsu_adapters::agents::text::{LineCutter, Tail, Utf8};
use matsu_adapters::agents::{QuotaPart, is_session_id, quota};
use matsu_core::clock::Timestamp;
use matsu_core::limits::RUN_TAIL_BYTES_MAX;
use matsu_core::run::{Answer, Question};

use crate::input::choice;

const NOW: Timestamp = Timestamp::from_millis(1_760_000_000_000);

pub fn run(data: &[u8]) {
    let (which, data) = choice(data);
    let (size, data) = choice(data);
    let names = decoders::names();
    match decoders::of(names[which % names.len()]).flatten() {
        Some(make) => {
            let whole = events(make(), data, data.len());
            assert_eq!(events(make(), data, size), whole, "the cut changes the events");
            if let Outcome::Failed(message) = &whole.1 {
                waits(message);
            }
        }
        None => text(data, size),
    }
}

/// Text is what the bytes say, without nul, wherever they are cut.
fn text(data: &[u8], size: usize) {
    let (mut utf8, mut tail, mut found) = (Utf8::default(), Tail::default(), String::new());
    for chunk in data.chunks(size.max(1)) {
        found += &utf8.push(chunk);
        tail.push(chunk);
    }
    found += &utf8.finish();
    let expected = String::from_utf8_lossy(data).replace('\0', "\u{fffd}");
    assert_eq!(found, expected, "the cut changes the text");
    assert!(tail.text().len() <= 3 * RUN_TAIL_BYTES_MAX && !tail.text().contains('\0'));
    waits(&found);
}

fn waits(message: &str) {
    let part = QuotaPart { patterns: vec![String::new()], spent: Vec::new() };
    if let Some(quota::Quota::Until(until)) = quota::read(Some(&part), message, NOW) {
        assert!(until > NOW && until.since(NOW).as_secs() <= 32 * 24 * 3600, "a wait without a bound");
    }
}

fn events(mut decoder: Box<dyn Decoder>, data: &[u8], size: usize) -> (Vec<Decoded>, Outcome) {
    let mut cutter = LineCutter::default();
    let pieces = data.chunks(size.max(1)).flat_map(|chunk| cutter.push(chunk));
    let mut lines: Vec<String> = pieces.map(|(_, line)| line).collect();
    lines.extend(cutter.take());
    let mut all = Vec::new();
    for line in lines {
        assert!(!line.contains(['\n', '\0']), "a line that is several");
        let Ok(event) = serde_json::from_str(&line) else { continue };
        for decoded in decoder.event(&event) {
            match &decoded {
                Decoded::Question(question) => reply(decoder.as_mut(), question),
                Decoded::Session(id) if is_session_id(id) => {
                    assert!(!id.starts_with('-') && !id.contains(['/', ' ', '\n']), "an id that is read as a flag");
                }
                _ => {}
            }
            all.push(decoded);
        }
    }
    (all, decoder.outcome())
}

/// An answer is one line of JSON, whatever the question was.
fn reply(decoder: &mut dyn Decoder, question: &Question) {
    let option = question.options.first().cloned();
    let answer = Answer { id: question.id.clone(), option, text: Some("a\nb".to_owned()) };
    let line = decoder.answer(&answer);
    let is_json = line.as_ref().is_some_and(|line| serde_json::from_str::<serde_json::Value>(line).is_ok());
    assert!(is_json || decoder.listens() == Listens::Never, "an answer that cannot be read");
    assert!(line.is_none_or(|line| !line.contains('\n')), "an answer of several lines");
}
