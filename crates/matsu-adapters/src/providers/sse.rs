//! Server-sent events as the standard has them, from bytes that come in pieces: fields by line, an event ends at a blank
//! line. Only their data is of interest here.

use std::collections::VecDeque;

use super::refusal::Fault;

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

#[derive(Default)]
pub struct Events {
    /// A line that has not ended yet.
    line: Vec<u8>,
    /// The last byte ended a line with a carriage return; a line feed behind it belongs to it.
    is_after_return: bool,
    is_first_line_read: bool,
    /// The data of the event that has not ended yet; `None` before its first field.
    data: Option<String>,
}

impl Events {
    /// Takes some bytes. Whole events that have data go to `out`; a fault is the last thing that does.
    pub fn push(&mut self, bytes: &[u8], out: &mut VecDeque<Result<String, Fault>>) {
        let mut rest = bytes;
        while !rest.is_empty() {
            if std::mem::take(&mut self.is_after_return)
                && let Some(after) = rest.strip_prefix(b"\n")
            {
                rest = after;
                continue;
            }
            let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
                self.line.extend_from_slice(rest);
                return;
            };
            self.line.extend_from_slice(&rest[..end]);
            self.is_after_return = rest[end] == b'\r';
            rest = &rest[end + 1..];
            let mut line = std::mem::take(&mut self.line);
            if !std::mem::replace(&mut self.is_first_line_read, true) && line.starts_with(BYTE_ORDER_MARK) {
                line.drain(..BYTE_ORDER_MARK.len());
            }
            let Ok(line) = std::str::from_utf8(&line) else {
                out.push_back(Err(Fault::protocol("the event stream is not UTF-8")));
                return;
            };
            if let Some(data) = self.line(line) {
                out.push_back(Ok(data));
            }
        }
    }

    /// The data of the event that this line ends, if it has some.
    fn line(&mut self, line: &str) -> Option<String> {
        if line.is_empty() {
            return self.data.take().filter(|data| !data.is_empty());
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        if field == "data" {
            let value = value.strip_prefix(' ').unwrap_or(value);
            match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.data = Some(value.to_owned()),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The data of the events in this, given in pieces of every size.
    #[track_caller]
    fn check(bytes: &[u8], expected: &[&str]) {
        for size in 1..=bytes.len() {
            let (mut events, mut out) = (Events::default(), VecDeque::new());
            bytes.chunks(size).for_each(|chunk| events.push(chunk, &mut out));
            let found: Vec<String> = out.into_iter().map(Result::unwrap).collect();
            assert_eq!(found, expected, "in pieces of {size}");
        }
    }

    #[test]
    fn lines_end_in_three_ways_and_a_byte_order_mark_is_passed_over() {
        check(b"data: a\r\ndata: b\r\n\r\ndata:c\n\n", &["a\nb", "c"]);
        check(b"data: a\rdata: b\r\rdata: c\r\r", &["a\nb", "c"]);
        check("\u{feff}data: x\n\n".as_bytes(), &["x"]);
    }

    #[test]
    fn only_whole_events_with_data_count() {
        check(
            b": comment\n\nevent: e\nid: 1\n\ndata\n\ndata:\n\ndata\ndata\n\ndata:  two\n\ndata: cut\n",
            &["\n", " two"],
        );
    }

    #[test]
    fn what_is_no_text_is_a_fault_after_what_came_before_it() {
        let (mut events, mut out) = (Events::default(), VecDeque::new());
        events.push(b"data: a\n\ndata: \xff\n\ndata: b\n\n", &mut out);
        assert!(matches!(out.make_contiguous(), [Ok(data), Err(_)] if data == "a"), "{out:?}");
    }
}
