//! The mounts of this process, and making them read-only. In a user namespace a mount keeps the restrictions it came
//! with: a remount that leaves one of them out is refused, so they are read first and repeated.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
use rustix::mount::{MountFlags, mount_remount};

/// One line of `/proc/self/mountinfo`.
#[derive(Debug, PartialEq, Eq)]
struct Mounted {
    id: u64,
    at: PathBuf,
    flags: MountFlags,
}

/// Makes everything that is mounted at or below `path` read-only, without devices and set-user-id programs.
///
/// # Errors
/// The kernel refused for one of them. Nothing may run in such a view.
pub fn make_read_only(path: &Path) -> io::Result<()> {
    restrict(path, MountFlags::RDONLY)
}

/// Takes devices and set-user-id programs from everything that is mounted at or below `path`.
///
/// # Errors
/// As [`make_read_only`].
pub fn make_plain(path: &Path) -> io::Result<()> {
    restrict(path, MountFlags::empty())
}

fn restrict(path: &Path, more: MountFlags) -> io::Result<()> {
    let table = std::fs::read("/proc/self/mountinfo")?;
    for mounted in parse(&table).filter(|mounted| mounted.at.starts_with(path)) {
        // One that a later mount covers cannot be reached, neither by us nor by the run.
        if !is_visible(&mounted)? {
            continue;
        }
        let flags = mounted.flags | more | MountFlags::NOSUID | MountFlags::NODEV | MountFlags::BIND;
        let remounted = mount_remount(&mounted.at, flags, c"");
        remounted.map_err(|error| io::Error::other(format!("cannot restrict {}: {error}", mounted.at.display())))?;
    }
    Ok(())
}

/// Whether what is at the path is this mount.
fn is_visible(mounted: &Mounted) -> io::Result<bool> {
    let stat = statx(CWD, &mounted.at, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::MNT_ID)?;
    Ok(stat.stx_mnt_id == mounted.id)
}

fn parse(table: &[u8]) -> impl Iterator<Item = Mounted> {
    table.split(|byte| *byte == b'\n').filter_map(parse_line)
}

/// `id parent device root mount-point options …`
fn parse_line(line: &[u8]) -> Option<Mounted> {
    let mut fields = line.split(|byte| *byte == b' ');
    let id = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
    let at = PathBuf::from(OsString::from_vec(unescape(fields.nth(3)?)));
    let options = std::str::from_utf8(fields.next()?).ok()?;
    Some(Mounted { id, at, flags: flags_of(options) })
}

fn flags_of(options: &str) -> MountFlags {
    let mut flags = MountFlags::empty();
    for option in options.split(',') {
        flags |= match option {
            "ro" => MountFlags::RDONLY,
            "nosuid" => MountFlags::NOSUID,
            "nodev" => MountFlags::NODEV,
            "noexec" => MountFlags::NOEXEC,
            "noatime" => MountFlags::NOATIME,
            "nodiratime" => MountFlags::NODIRATIME,
            "relatime" => MountFlags::RELATIME,
            _ => MountFlags::empty(),
        };
    }
    if !flags.intersects(MountFlags::NOATIME | MountFlags::RELATIME) {
        flags |= MountFlags::STRICTATIME;
    }
    flags
}

/// Blanks and the like are written as `\040`.
fn unescape(field: &[u8]) -> Vec<u8> {
    if !field.contains(&b'\\') {
        return field.to_vec();
    }
    let mut plain = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((byte, tail)) = rest.split_first() {
        let octal = tail.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.filter(|_| *byte == b'\\').and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(code) => {
                plain.push(code);
                rest = &tail[3..];
            }
            None => {
                plain.push(*byte);
                rest = tail;
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_gives_its_place_and_its_restrictions() {
        let line = b"36 35 98:0 /mnt1 /mnt\\040two rw,noatime,nosuid master:1 - ext3 /dev/root rw,errors=continue";
        let mounted = parse(line).next().unwrap();
        assert_eq!((mounted.id, mounted.at.as_path()), (36, Path::new("/mnt two")));
        assert_eq!(mounted.flags, MountFlags::NOATIME | MountFlags::NOSUID);
    }

    #[test]
    fn a_mount_without_a_rule_for_access_times_keeps_that() {
        assert_eq!(flags_of("ro"), MountFlags::RDONLY | MountFlags::STRICTATIME);
    }

    #[test]
    fn a_backslash_without_digits_stays() {
        assert_eq!(unescape(b"a\\b\\134"), b"a\\b\\");
    }
}
