//! Secrets in output: wherever a text is cut, no secret is shown, and the rest of the text is.

use matsu_core::redaction::{SECRET_BYTES_MIN, Stream, redact, redact_cut, remember_while};

use crate::input::{choice, first_line};

pub fn run(data: &[u8]) {
    let (cut, data) = choice(data);
    let (first, data) = first_line(data);
    let (second, data) = first_line(data);
    let secrets = [first.trim(), second.trim()];
    // What stands in the mark would be shown by the mark itself.
    if secrets.iter().any(|secret| "[redacted: A] [redacted: B]".contains(secret) || secret.contains(['[', ']'])) {
        return;
    }
    let text = String::from_utf8_lossy(data).replace('[', &secrets[cut % 2].repeat(2));
    let _known = [remember_while("A", secrets[0]), remember_while("B", secrets[1])];
    let whole = redact(&text).into_owned();
    let mut stream = Stream::default();
    let mut shown = String::new();
    let letters: Vec<char> = text.chars().collect();
    for piece in letters.chunks(cut.max(1)) {
        shown += &stream.push(&piece.iter().collect::<String>());
    }
    shown += &stream.finish();
    assert_eq!(shown, whole, "the cut changes what is shown");
    for secret in secrets.iter().filter(|secret| secret.len() >= SECRET_BYTES_MIN) {
        assert!(!shown.contains(secret) && !redact_cut(&text).contains(secret), "a secret is shown");
    }
}
