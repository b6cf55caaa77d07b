//! Small files in folders that a run or another user may have written, read by the daemon itself: regular files only, no
//! links, never more than was asked for, and never waiting, as for the other end of a named pipe.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// The text of a file. A link at the end of the path is not followed.
///
/// # Errors
/// It is not a regular file, has more bytes, is no text, or cannot be read.
pub fn read_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    String::from_utf8(read_bytes(path, bytes_max)?).map_err(|_| io::Error::other("it is not text in UTF-8"))
}

/// As [`read_text`], whatever the bytes are.
///
/// # Errors
/// It is not a regular file, has more bytes, or cannot be read.
pub fn read_bytes(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY).bits()).unwrap_or(0);
    let file = fs::OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(|error| {
        match error.raw_os_error().map(rustix::io::Errno::from_raw_os_error) {
            Some(rustix::io::Errno::LOOP) => io::Error::other("it is a link, which is not followed"),
            _ => error,
        }
    })?;
    read_open(file, bytes_max)
}

fn read_open(file: File, bytes_max: u64) -> io::Result<Vec<u8>> {
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    // What it says of its length is not believed.
    file.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        return Err(io::Error::other(format!("it has more than {bytes_max} bytes")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_short_regular_files_are_read_and_nothing_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("plain"), "text").unwrap();
        assert_eq!(read_text(&path("plain"), 4).unwrap(), "text");
        assert!(read_text(&path("plain"), 3).unwrap_err().to_string().contains("more than 3 bytes"));
        std::os::unix::fs::symlink(path("plain"), path("link")).unwrap();
        assert!(read_text(&path("link"), 9).unwrap_err().to_string().contains("a link"));
        rustix::fs::mkfifoat(rustix::fs::CWD, path("pipe"), rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap();
        assert!(read_text(&path("pipe"), 9).unwrap_err().to_string().contains("regular file"));
        assert!(read_text(folder.path(), 9).unwrap_err().to_string().contains("regular file"));
        assert_eq!(read_text(&path("absent"), 9).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(read_text(Path::new("/dev/zero"), 9).is_err());
    }
}
