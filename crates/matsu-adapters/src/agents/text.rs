//! Bytes of a program as text: cut where reads end, in whatever encoding. Nothing here grows.

use std::collections::VecDeque;

use matsu_core::limits::{RUN_LINE_BYTES_MAX, RUN_TAIL_BYTES_MAX};

/// Text from bytes that come in pieces. A character that is cut in two waits for its other half; what is no text at
/// all is shown as such. Nul is no text either: not every store can hold it.
#[derive(Debug, Default)]
pub struct Utf8 {
    rest: Vec<u8>,
}

impl Utf8 {
    pub fn push(&mut self, bytes: &[u8]) -> String {
        let mut all = std::mem::take(&mut self.rest);
        all.extend_from_slice(bytes);
        let mut text = String::with_capacity(all.len());
        let mut left = all.as_slice();
        loop {
            match std::str::from_utf8(left) {
                Ok(good) => {
                    text.push_str(good);
                    break;
                }
                Err(error) => {
                    let (good, bad) = left.split_at(error.valid_up_to());
                    text.push_str(std::str::from_utf8(good).unwrap_or_default());
                    let Some(length) = error.error_len() else {
                        self.rest = bad.to_vec();
                        break;
                    };
                    text.push(char::REPLACEMENT_CHARACTER);
                    left = &bad[length..];
                }
            }
        }
        if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text }
    }

    /// Bytes of a character that waits for its other half.
    pub fn held(&self) -> usize {
        self.rest.len()
    }

    /// What was cut off by the end.
    pub fn finish(&mut self) -> String {
        if std::mem::take(&mut self.rest).is_empty() { String::new() } else { "\u{fffd}".to_owned() }
    }
}

/// The last bytes of a stream.
#[derive(Debug, Default)]
pub struct Tail {
    bytes: VecDeque<u8>,
}

impl Tail {
    pub fn push(&mut self, bytes: &[u8]) {
        let kept = &bytes[bytes.len().saturating_sub(RUN_TAIL_BYTES_MAX)..];
        let excess = (self.bytes.len() + kept.len()).saturating_sub(RUN_TAIL_BYTES_MAX);
        self.bytes.drain(..excess);
        self.bytes.extend(kept);
    }

    #[must_use]
    pub fn text(&self) -> String {
        let bytes: Vec<u8> = self.bytes.iter().copied().collect();
        let mut text = String::from_utf8_lossy(&bytes).replace('\0', "\u{fffd}");
        // The first character may have been cut in two.
        while text.starts_with(char::REPLACEMENT_CHARACTER) {
            text.remove(0);
        }
        text
    }
}

/// Lines from bytes that come in pieces; one beyond the bound is skipped as a whole.
#[derive(Debug, Default)]
pub struct LineCutter {
    line: Vec<u8>,
    is_too_long: bool,
}

impl LineCutter {
    /// The lines that end in these bytes, each with the place after its end.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<(usize, String)> {
        let mut lines = Vec::new();
        let mut at = 0;
        for (n, piece) in bytes.split(|byte| *byte == b'\n').enumerate() {
            if n > 0 {
                lines.extend(self.take().map(|line| (at, line)));
            }
            at += piece.len() + 1;
            if self.line.len() + piece.len() > RUN_LINE_BYTES_MAX {
                self.is_too_long = true;
                self.line = Vec::new();
            } else if !self.is_too_long {
                self.line.extend_from_slice(piece);
            }
        }
        lines
    }

    /// The line so far; at the end of the stream it need not end itself.
    pub fn take(&mut self) -> Option<String> {
        let line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.is_too_long) {
            return Some("[a line that is too long was skipped]".to_owned());
        }
        let line = String::from_utf8_lossy(&line).replace('\0', "\u{fffd}");
        let line = line.trim_end();
        (!line.is_empty()).then(|| line.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_are_cut_in_two_come_out_whole() {
        let bytes = "待つ\u{0}é".as_bytes();
        for cut in 0..=bytes.len() {
            let mut utf8 = Utf8::default();
            let text = utf8.push(&bytes[..cut]) + &utf8.push(&bytes[cut..]) + &utf8.finish();
            assert_eq!(text, "待つ\u{fffd}é", "cut at {cut}");
        }
        let mut utf8 = Utf8::default();
        assert_eq!(utf8.push(&[b'a', 0xff, b'b', 0xe5]) + &utf8.finish(), "a\u{fffd}b\u{fffd}");
    }

    #[test]
    fn a_tail_keeps_the_last_bytes_only() {
        let mut tail = Tail::default();
        for n in 0..10_000 {
            tail.push(format!("{n}\n").as_bytes());
        }
        assert!(tail.text().len() <= RUN_TAIL_BYTES_MAX && tail.text().ends_with("9998\n9999\n"));
        tail.push(&[b'x'; 3 * RUN_TAIL_BYTES_MAX]);
        assert_eq!(tail.text(), "x".repeat(RUN_TAIL_BYTES_MAX));
    }

    #[test]
    fn lines_are_put_together_and_too_long_ones_skipped() {
        let mut cutter = LineCutter::default();
        let line = |end: usize, text: &str| (end, text.to_owned());
        assert_eq!(cutter.push(b"on"), []);
        assert_eq!(cutter.push(b"e\ntwo\r\n\nth"), [line(2, "one"), line(7, "two")]);
        assert_eq!(cutter.take().as_deref(), Some("th"));
        assert_eq!(cutter.push(&vec![b'x'; RUN_LINE_BYTES_MAX + 1]), []);
        let skipped = line(2, "[a line that is too long was skipped]");
        assert_eq!(cutter.push(b"x\nshort\n"), [skipped, line(8, "short")]);
    }
}
