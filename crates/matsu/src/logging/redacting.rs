//! A log without secrets: whatever a line repeats, no value that this process knows as one is written.

use std::io::{self, Write};

use matsu_core::redaction::redact;
use tracing_subscriber::fmt::MakeWriter;

/// Writes what the other writes, line by line, redacted.
pub struct Redacting<M>(pub M);

impl<'a, M: MakeWriter<'a>> MakeWriter<'a> for Redacting<M> {
    type Writer = Lines<M::Writer>;

    fn make_writer(&'a self) -> Self::Writer {
        Lines(self.0.make_writer())
    }
}

/// Each event is written in one piece.
pub struct Lines<W>(W);

impl<W: Write> Write for Lines<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match std::str::from_utf8(line) {
            Ok(text) => self.0.write_all(redact(text).as_bytes())?,
            Err(_) => self.0.write_all(redact(&String::from_utf8_lossy(line)).as_bytes())?,
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_line_shows_no_known_secret() {
        let _known = matsu_core::redaction::remember_while("LOGGED", "a-key-that-is-logged");
        let mut lines = Lines(Vec::new());
        lines.write_all(b"refused: a-key-that-is-logged\n").unwrap();
        assert_eq!(lines.0, b"refused: [redacted: LOGGED]\n");
    }
}
