//! Lines of bytes, none longer than a frame may be. What is longer is skipped over and costs no memory.

use std::io;

use matsu_core::limits::FRAME_BYTES_MAX;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

pub struct BoundedLines<R> {
    reader: BufReader<R>,
    line: Vec<u8>,
    /// The line was longer than is kept; how long it is does not matter any more.
    too_long: bool,
}

/// What was read.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// Without its end.
    Whole(Vec<u8>),
    /// More than [`FRAME_BYTES_MAX`] bytes; all of it is gone.
    TooLong,
    /// Nothing comes any more. A last line without an end is none.
    End,
}

impl<R: AsyncRead + Unpin> BoundedLines<R> {
    pub fn new(reader: R) -> Self {
        Self { reader: BufReader::new(reader), line: Vec::new(), too_long: false }
    }

    /// The next line. May be dropped and called again at any time.
    ///
    /// # Errors
    /// A stream that breaks.
    pub async fn next(&mut self) -> io::Result<Line> {
        loop {
            let available = self.reader.fill_buf().await?;
            if available.is_empty() {
                return Ok(Line::End);
            }
            let newline = available.iter().position(|byte| *byte == b'\n');
            let text = newline.unwrap_or(available.len());
            if self.line.len() + text > FRAME_BYTES_MAX {
                self.too_long = true;
                self.line = Vec::new();
            } else if !self.too_long {
                self.line.extend_from_slice(&available[..text]);
            }
            self.reader.consume(newline.map_or(text, |at| at + 1));
            if newline.is_some() {
                let line = std::mem::take(&mut self.line);
                return Ok(if std::mem::take(&mut self.too_long) { Line::TooLong } else { Line::Whole(line) });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_line_at_the_bound_is_whole_and_one_above_it_is_skipped() {
        let (at, above) = (vec![b'x'; FRAME_BYTES_MAX], vec![b'y'; FRAME_BYTES_MAX + 1]);
        let input = [&at[..], b"\n", &above[..], b"\nnext\nunfinished"].concat();
        let mut lines = BoundedLines::new(&input[..]);
        assert_eq!(lines.next().await.unwrap(), Line::Whole(at));
        assert_eq!(lines.next().await.unwrap(), Line::TooLong);
        assert_eq!(lines.next().await.unwrap(), Line::Whole(b"next".to_vec()));
        assert_eq!(lines.next().await.unwrap(), Line::End);
    }
}
