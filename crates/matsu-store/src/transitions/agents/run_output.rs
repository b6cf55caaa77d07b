//! The output of a run, in parts: appended under its fence, read from anywhere.

use matsu_core::id::JobId;
use matsu_core::limits::{RUN_OUTPUT_BYTES_MAX, RUN_PART_BYTES_MAX};
use matsu_core::ports::store::{
    AppendOutput, OutputFrom, OutputPart, OutputPosition, OutputSlice, OutputStream, ReadOutput, ReadOutputPosition,
    StoreError,
};

use crate::sql::{Sql, Transition, Tx, params};
use crate::transitions::jobs::check_fence;

const FORGET_EARLIER: Sql = Sql::both("DELETE FROM run_output WHERE job_id = $1 AND stream = $2 AND attempt < $3");
const APPEND: Sql = Sql::both(
    "INSERT INTO run_output (job_id, attempt, stream, start, bytes, text, read_to) \
     VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (job_id, stream, start) DO NOTHING",
);
/// The middle of a stream: whole parts after the first bytes that are kept and before the last ones.
const CUT: Sql = Sql::both(
    "DELETE FROM run_output WHERE job_id = $1 AND stream = $2 AND start >= $3 AND start + bytes <= $4 AND start < $4",
);
const NEXT_PART: Sql = Sql::both("SELECT min(start) FROM run_output WHERE job_id = $1 AND stream = $2 AND start >= $3");
const POSITION: Sql = Sql::both(
    "SELECT stream, max(start + bytes), coalesce(max(read_to), 0) FROM run_output \
     WHERE job_id = $1 AND attempt >= $2 GROUP BY stream",
);
const TOTAL: Sql =
    Sql::both("SELECT start + bytes FROM run_output WHERE job_id = $1 AND stream = $2 ORDER BY start DESC LIMIT 1");
/// No part is longer than a bound, so the first one that can reach the wanted byte is not far before it.
const PARTS: Sql = Sql::both(
    "SELECT start, text FROM run_output WHERE job_id = $1 AND stream = $2 AND start >= $3 AND start < $4 ORDER BY start",
);

/// Less than this is the small talk of a run.
const BULK_BYTES: usize = 8 * 1024;

impl Transition for AppendOutput {
    fn is_bulk(&self) -> bool {
        self.parts.iter().map(|part| part.text.len()).sum::<usize>() >= BULK_BYTES
    }

    async fn run(&self, tx: &mut Tx<'_>) -> Result<(), StoreError> {
        let lease = &self.lease;
        check_fence(tx, lease).await?;
        for part in &self.parts {
            let stream = part.stream.as_str();
            if part.start == 0 {
                tx.run(&FORGET_EARLIER, params![&lease.job_id, stream, lease.attempt]).await?;
            }
            let (start, bytes, read_to) = (int(part.start), int(part.text.len() as u64), int(self.read_to));
            let values = params![&lease.job_id, lease.attempt, stream, start, bytes, &part.text, read_to];
            tx.run(&APPEND, values).await?;
        }
        for last in self.parts.iter().enumerate().filter(|(n, part)| is_last_of_stream(&self.parts[n + 1..], part)) {
            cut_middle(tx, &self.lease.job_id, last.1).await?;
        }
        Ok(())
    }
}

fn is_last_of_stream(later: &[OutputPart], part: &OutputPart) -> bool {
    later.iter().all(|later| later.stream != part.stream)
}

async fn cut_middle(tx: &mut Tx<'_>, job: &JobId, last: &OutputPart) -> Result<(), StoreError> {
    let kept_before = int(RUN_OUTPUT_BYTES_MAX as u64 / 2);
    let kept_after = int(last.start + last.text.len() as u64) - kept_before;
    if kept_after > kept_before {
        let values = params![job, last.stream.as_str(), kept_before, kept_after];
        tx.run(&CUT, values).await?;
    }
    Ok(())
}

impl Transition for ReadOutputPosition {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<OutputPosition, StoreError> {
        let mut position = OutputPosition::default();
        for row in tx.rows(&POSITION, params![&self.job, self.from_attempt]).await? {
            let mut c = row.columns();
            let stream = c.word(OutputStream::parse)?;
            let bytes = u64::try_from(c.int()?).unwrap_or(0);
            match stream {
                OutputStream::Result => position.result = bytes,
                OutputStream::Log => position.log = bytes,
            }
            position.read_to = position.read_to.max(u64::try_from(c.int()?).unwrap_or(0));
        }
        Ok(position)
    }
}

impl Transition for ReadOutput {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<OutputSlice, StoreError> {
        let stream = self.wish.stream.as_str();
        let Some(row) = tx.row(&TOTAL, params![&self.job, stream]).await? else { return Ok(OutputSlice::default()) };
        let total = row.only_int()?;
        let bytes_max = i64::try_from(self.wish.bytes_max).unwrap_or(i64::MAX);
        let from = match self.wish.from {
            OutputFrom::Byte(from) => int(from).min(total),
            OutputFrom::End => (total - bytes_max).max(0),
        };
        let found = piece(tx, self, from, bytes_max, total).await?;
        match found {
            Some(slice) => Ok(slice),
            // In the middle that was cut: what comes after it is read instead.
            None => {
                let next = tx.row(&NEXT_PART, params![&self.job, stream, from]).await?;
                let next = next.map(|row| row.only_int()).transpose()?.unwrap_or(total);
                Ok(piece(tx, self, next, bytes_max, total).await?.unwrap_or_default())
            }
        }
    }
}

/// The wanted bytes up to the next gap. `None`: they begin in a gap.
async fn piece(
    tx: &mut Tx<'_>,
    read: &ReadOutput,
    from: i64,
    bytes_max: i64,
    total: i64,
) -> Result<Option<OutputSlice>, StoreError> {
    let stream = read.wish.stream.as_str();
    let to = from.saturating_add(bytes_max).min(total);
    let rows = tx.rows(&PARTS, params![&read.job, stream, from - int(RUN_PART_BYTES_MAX as u64), to]).await?;
    let (mut text, mut begin) = (String::new(), from);
    for row in &rows {
        let mut c = row.columns();
        let start = c.int()?;
        let is_joined = start == begin + int(text.len() as u64);
        if !text.is_empty() && !is_joined && start > from {
            break;
        }
        if !is_joined {
            (begin, text) = (start, String::new());
        }
        text.push_str(&c.text()?);
    }
    let end = begin + int(text.len() as u64);
    if from < total && !(begin..end).contains(&from) {
        return Ok(None);
    }
    let mut slice = cut(&text, begin, from, to.min(end), total);
    // Also where the part ends exactly at the gap: the next one would begin behind it without a word.
    if end <= to && end < total {
        let next = tx.row(&NEXT_PART, params![&read.job, stream, end]).await?;
        let next = next.map(|row| row.only_int()).transpose()?.unwrap_or(end);
        slice.cut = u64::try_from(next - end).unwrap_or(0);
        slice.end += slice.cut;
    }
    Ok(Some(slice))
}

/// The wanted bytes of a text that begins at `begin`; a border inside a character moves to the next one at the start
/// and to the one before at the end, so that parts read one after the other are whole.
fn cut(text: &str, begin: i64, from: i64, to: i64, total: i64) -> OutputSlice {
    let place = |at: i64| usize::try_from(at - begin).unwrap_or(0).min(text.len());
    let start = text.ceil_char_boundary(place(from));
    let end = text.floor_char_boundary(place(to)).max(start);
    let at = |place: usize| u64::try_from(begin).unwrap_or(0) + place as u64;
    OutputSlice {
        text: text[start..end].to_owned(),
        start: at(start),
        end: at(end),
        total: u64::try_from(total).unwrap_or(0),
        cut: 0,
    }
}

fn int(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn borders_inside_a_character_are_moved_so_that_nothing_is_lost_or_doubled() {
        let text = "待つ待つ";
        let first = cut(text, 0, 0, 4, 12);
        assert_eq!((first.text.as_str(), first.start, first.end), ("待", 0, 3));
        let second = cut(text, 0, 3, 7, 12);
        assert_eq!((second.text.as_str(), second.end), ("つ", 6));
        let part = cut("つ待つ", 3, 6, 12, 12);
        assert_eq!((part.text.as_str(), part.start, part.end), ("待つ", 6, 12));
        assert_eq!(cut(text, 0, 99, 120, 12).text, "");
    }
}
