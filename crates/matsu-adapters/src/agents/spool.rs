//! What a program prints, kept in files between its supervisor, which writes them, and the daemon, which reads them.
//!
//! A spool is a stream of bytes in segments. Each segment is a file named after the position of its first byte and
//! holds frames: length, checksum, bytes. A frame is read whole or not at all, so a writer that was killed leaves
//! nothing half-read; positions are counted in bytes of the stream, so they mean the same whatever the frames are.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A segment that has grown this long is followed by another.
pub const SEGMENT_BYTES: u64 = 1024 * 1024;
const FRAME_BYTES_MAX: usize = 64 * 1024;
const HEADER_BYTES: usize = 8;
/// One read takes at least one whole frame.
const READ_BYTES: usize = HEADER_BYTES + FRAME_BYTES_MAX;

/// Which stream of a program a spool holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    Out,
    Err,
}

impl Stream {
    fn prefix(self) -> &'static str {
        match self {
            Self::Out => "out-",
            Self::Err => "err-",
        }
    }
}

/// The segments of a stream by the position of their first byte, in order.
fn segments(folder: &Path, stream: Stream) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if let Some(start) = name.strip_prefix(stream.prefix()).and_then(|start| start.parse().ok()) {
            found.push((start, path));
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// Removes the segments that lie wholly before a position. The last one always stays.
///
/// # Errors
/// The folder cannot be read.
pub fn forget_before(folder: &Path, stream: Stream, position: u64) -> io::Result<()> {
    let segments = segments(folder, stream)?;
    for pair in segments.windows(2) {
        if let [(_, path), (end, _)] = pair
            && *end <= position
        {
            let _ = fs::remove_file(path);
        }
    }
    Ok(())
}

#[derive(Debug)]
pub struct SpoolWriter {
    folder: PathBuf,
    stream: Stream,
    segment: Option<File>,
    segment_bytes: u64,
    end: u64,
}

impl SpoolWriter {
    /// A new spool in an empty folder.
    pub fn new(folder: &Path, stream: Stream) -> Self {
        Self { folder: folder.to_owned(), stream, segment: None, segment_bytes: 0, end: 0 }
    }

    /// Bytes written so far.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Appends all of `bytes`, or nothing.
    ///
    /// # Errors
    /// The disk is full or broken. The same bytes can be appended again later.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut frames = Vec::with_capacity(bytes.len() + HEADER_BYTES);
        for part in bytes.chunks(FRAME_BYTES_MAX) {
            let length = u32::try_from(part.len()).unwrap_or(0);
            frames.extend(length.to_le_bytes());
            frames.extend(crc32fast::hash(part).to_le_bytes());
            frames.extend(part);
        }
        if self.segment_bytes >= SEGMENT_BYTES {
            self.segment = None;
        }
        let segment = match &mut self.segment {
            Some(segment) => segment,
            none => {
                let path = self.folder.join(format!("{}{:020}", self.stream.prefix(), self.end));
                let file = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(path)?;
                self.segment_bytes = 0;
                none.insert(file)
            }
        };
        if let Err(error) = segment.write_all_at(&frames, self.segment_bytes) {
            // A part may have been written; a reader must not take it for the beginning of a frame.
            let _ = segment.set_len(self.segment_bytes);
            return Err(error);
        }
        self.segment_bytes += frames.len() as u64;
        self.end += bytes.len() as u64;
        Ok(())
    }
}

/// Reads a spool from a position on. May read while it is written.
#[derive(Debug)]
pub struct SpoolReader {
    folder: PathBuf,
    stream: Stream,
    position: u64,
    segment: Option<Segment>,
}

#[derive(Debug)]
struct Segment {
    file: File,
    start: u64,
    /// Where the next frame begins, in bytes of the file and of the stream.
    file_at: u64,
    stream_at: u64,
    buffer: Vec<u8>,
}

impl SpoolReader {
    pub fn new(folder: &Path, stream: Stream, position: u64) -> Self {
        Self { folder: folder.to_owned(), stream, position, segment: None }
    }

    pub fn position(&self) -> u64 {
        self.position
    }

    /// The position of the oldest byte that is still there.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn first(folder: &Path, stream: Stream) -> io::Result<u64> {
        Ok(segments(folder, stream)?.first().map_or(0, |(start, _)| *start))
    }

    /// The next bytes, as many as one read takes; `None`: there are no more at the moment.
    ///
    /// # Errors
    /// The spool cannot be read, is damaged, or begins after the position.
    pub fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            let Some(segment) = self.segment()? else { return Ok(None) };
            match segment.frames()? {
                Some(mut bytes) => {
                    let stream_at = segment.stream_at;
                    // A position inside these bytes: the part before it was read earlier.
                    let skip = usize::try_from(self.position.saturating_sub(stream_at - bytes.len() as u64));
                    let skip = skip.unwrap_or(usize::MAX).min(bytes.len());
                    if skip < bytes.len() {
                        self.position = stream_at;
                        bytes.drain(..skip);
                        return Ok(Some(bytes));
                    }
                }
                // The end of this segment, and perhaps of all.
                None if !self.follow()? => return Ok(None),
                None => {}
            }
        }
    }

    fn segment(&mut self) -> io::Result<Option<&mut Segment>> {
        if self.segment.is_none() {
            let found = segments(&self.folder, self.stream)?;
            let Some((first, _)) = found.first() else { return Ok(None) };
            if *first > self.position {
                let error = format!("output before byte {first} is gone; byte {} was requested", self.position);
                return Err(io::Error::other(error));
            }
            let at = found.iter().rposition(|(start, _)| *start <= self.position).unwrap_or(0);
            self.segment = found.get(at).map(|(start, path)| Segment::open(*start, path)).transpose()?;
        }
        Ok(self.segment.as_mut())
    }

    /// Goes on to the segment after this one, if there is one.
    fn follow(&mut self) -> io::Result<bool> {
        let Some(ended) = &self.segment else { return Ok(false) };
        let found = segments(&self.folder, self.stream)?;
        match found.iter().find(|(start, _)| *start > ended.start) {
            Some((start, path)) if *start == ended.stream_at => {
                self.segment = Some(Segment::open(*start, path)?);
                Ok(true)
            }
            Some((start, _)) => Err(io::Error::other(format!("output before byte {start} is damaged"))),
            None => Ok(false),
        }
    }
}

impl Segment {
    fn open(start: u64, path: &Path) -> io::Result<Self> {
        Ok(Self { file: File::open(path)?, start, file_at: 0, stream_at: start, buffer: vec![0; READ_BYTES] })
    }

    /// The bytes of the next frames that are whole, as many as one read takes.
    fn frames(&mut self) -> io::Result<Option<Vec<u8>>> {
        let read = self.file.read_at(&mut self.buffer, self.file_at)?;
        let (mut rest, mut whole) = (&self.buffer[..read], Vec::with_capacity(read));
        while let Some((&[a, b, c, d, ref sum @ ..], after)) = rest.split_first_chunk::<HEADER_BYTES>() {
            let length = u32::from_le_bytes([a, b, c, d]) as usize;
            let is_length = (1..=FRAME_BYTES_MAX).contains(&length);
            let frame = after.split_at_checked(length).filter(|_| is_length);
            let is_good = is_length && frame.is_none_or(|(bytes, _)| crc32fast::hash(bytes).to_le_bytes() == *sum);
            match frame {
                // What is good before it is read first.
                _ if !is_good && whole.is_empty() => return Err(damaged(self.stream_at)),
                Some((bytes, after)) if is_good => {
                    whole.extend_from_slice(bytes);
                    rest = after;
                }
                _ => break,
            }
        }
        self.file_at += (read - rest.len()) as u64;
        self.stream_at += whole.len() as u64;
        Ok((!whole.is_empty()).then_some(whole))
    }
}

fn damaged(position: u64) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("output at byte {position} is damaged"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(reader: &mut SpoolReader) -> Vec<u8> {
        let mut bytes = Vec::new();
        while let Some(more) = reader.next().unwrap() {
            bytes.extend(more);
        }
        bytes
    }

    fn numbered(lines: u32) -> Vec<u8> {
        (0..lines).flat_map(|n| format!("line {n}\n").into_bytes()).collect()
    }

    #[test]
    fn what_is_written_is_read_from_every_position() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = SpoolWriter::new(folder.path(), Stream::Out);
        let mut reader = SpoolReader::new(folder.path(), Stream::Out, 0);
        assert_eq!(reader.next().unwrap(), None, "nothing is written yet");
        let bytes = numbered(400_000);
        let mut followed = Vec::new();
        for part in bytes.chunks(100_001) {
            writer.append(part).unwrap();
            followed.extend(all(&mut reader));
        }
        assert_eq!(writer.end(), bytes.len() as u64);
        assert!(followed == bytes, "read while it was written");
        for position in [0, 1, 70_000, 100_001, 1_048_576, 3_000_000, bytes.len()] {
            let mut reader = SpoolReader::new(folder.path(), Stream::Out, position as u64);
            assert!(all(&mut reader) == bytes[position..], "from {position}");
            assert_eq!(reader.position(), bytes.len() as u64);
        }
        assert_eq!(SpoolReader::new(folder.path(), Stream::Err, 0).next().unwrap(), None, "another stream");
    }

    #[test]
    fn what_was_stored_is_removed_and_cannot_be_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = SpoolWriter::new(folder.path(), Stream::Out);
        let bytes = numbered(400_000);
        bytes.chunks(50_000).for_each(|part| writer.append(part).unwrap());
        forget_before(folder.path(), Stream::Out, 2_500_000).unwrap();
        let first = SpoolReader::first(folder.path(), Stream::Out).unwrap();
        assert!(first > 1_000_000 && first <= 2_500_000, "{first}");
        let mut reader = SpoolReader::new(folder.path(), Stream::Out, 2_500_000);
        assert!(all(&mut reader) == bytes[2_500_000..]);
        let error = SpoolReader::new(folder.path(), Stream::Out, 5).next().unwrap_err().to_string();
        assert!(error.contains("is gone"), "{error}");
    }

    #[test]
    fn a_frame_that_was_cut_off_is_not_read_and_a_damaged_one_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = SpoolWriter::new(folder.path(), Stream::Out);
        writer.append(b"whole\n").unwrap();
        writer.append(b"cut off\n").unwrap();
        let path = segments(folder.path(), Stream::Out).unwrap().remove(0).1;
        let length = fs::metadata(&path).unwrap().len();
        for cut in 1..=15 {
            OpenOptions::new().write(true).open(&path).unwrap().set_len(length - cut).unwrap();
            assert_eq!(all(&mut SpoolReader::new(folder.path(), Stream::Out, 0)), b"whole\n", "{cut} bytes less");
        }
        let mut bytes = fs::read(&path).unwrap();
        bytes[10] ^= 1;
        fs::write(&path, bytes).unwrap();
        let error = SpoolReader::new(folder.path(), Stream::Out, 0).next().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}
