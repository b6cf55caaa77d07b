//! Builds the file system of a sealed run on an empty folder, and makes it the root. Runs in the new namespaces, with
//! the capability to mount, which is given up right afterwards.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags,
    fsconfig_create, fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, mount, mount_bind, mount_bind_recursive,
    move_mount, open_tree, unmount,
};

use super::fence::open_real;
use super::mount_table::{make_plain, make_read_only};
use super::view::{Entry, SYSTEM, View};

/// Devices that programs expect.
const DEVICES: &[&str] = &["null", "zero", "full", "random", "urandom", "tty"];

/// Parts of `/proc` through which root could change the machine. Other users cannot write them anyway.
const PROC_SETTINGS: &[&str] = &["sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi"];

/// Everybody may read these files, and each reader finds its own keys in them.
const PROC_KEYS: &[&str] = &["keys", "key-users"];

/// An empty file that covers others.
const EMPTY: &str = ".empty";

/// How deep `/etc` is searched for files of root alone.
const ETC_DEPTH_MAX: usize = 8;

/// Builds the view and enters it.
///
/// # Errors
/// A part of it could not be made. Nothing may run then.
pub fn build(view: &View) -> io::Result<()> {
    let root = &view.root;
    let options = c"mode=0755,size=64m";
    at(root, mount("tmpfs", root, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, options))?;
    for name in SYSTEM {
        system_folder(root, name)?;
    }
    hide_root_only_files(root)?;
    devices(root)?;
    proc(root)?;
    temporary(root, &view.tmp)?;
    resolver(root)?;
    let mut covered = Vec::new();
    for entry in &view.entries {
        match entry {
            Entry::Cover(path) => covered.extend(cover(&inside(root, path))?),
            entry => add(root, entry)?,
        }
    }
    // Only now: later entries may lie in a covered folder.
    for folder in covered {
        close_cover(&folder)?;
    }
    enter(root)
}

/// The place of `path` in the new root.
fn inside(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

fn at<T>(path: &Path, done: Result<T, impl Into<io::Error>>) -> io::Result<T> {
    done.map_err(|error| {
        let error: io::Error = error.into();
        io::Error::new(error.kind(), format!("cannot set up {}: {error}", path.display()))
    })
}

fn folder(path: &Path) -> io::Result<()> {
    at(path, fs::DirBuilder::new().recursive(true).mode(0o755).create(path))
}

fn file(path: &Path) -> io::Result<()> {
    // What is there may be a program that runs, which cannot be opened for writing.
    if path.symlink_metadata().is_ok() {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        folder(parent)?;
    }
    at(path, fs::OpenOptions::new().create(true).append(true).mode(0o600).open(path)).map(drop)
}

/// A link in the root of the machine (`/bin`, `/lib`) stays a link; a folder is shown read-only.
fn system_folder(root: &Path, name: &str) -> io::Result<()> {
    let real = Path::new("/").join(name);
    let Ok(meta) = fs::symlink_metadata(&real) else { return Ok(()) };
    let target = root.join(name);
    if meta.is_symlink() {
        return at(&target, std::os::unix::fs::symlink(fs::read_link(&real)?, &target));
    }
    bind(&real, &target)?;
    make_read_only(&target)
}

/// A daemon that runs as root could show a run what only root may read: password hashes, host keys. Those files are
/// covered. For other users the machine's own rules hold.
fn hide_root_only_files(root: &Path) -> io::Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let mut folders = vec![(root.join("etc"), 0)];
    let empty = root.join(EMPTY);
    file(&empty)?;
    while let Some((path, depth)) = folders.pop() {
        let Ok(entries) = fs::read_dir(&path) else { continue };
        for entry in entries.filter_map(Result::ok) {
            let Ok(meta) = entry.path().symlink_metadata() else { continue };
            let is_public = meta.mode() & 0o004 != 0;
            if meta.is_file() && !is_public {
                at(&entry.path(), mount_bind(&empty, entry.path()))?;
                make_read_only(&entry.path())?;
            } else if meta.is_dir() && !is_public {
                at(&entry.path(), mount("tmpfs", entry.path(), "tmpfs", MountFlags::RDONLY, c"size=0,mode=0555"))?;
            } else if meta.is_dir() && depth < ETC_DEPTH_MAX {
                folders.push((entry.path(), depth + 1));
            }
        }
    }
    Ok(())
}

fn devices(root: &Path) -> io::Result<()> {
    let dev = root.join("dev");
    folder(&dev)?;
    for name in DEVICES {
        let target = dev.join(name);
        file(&target)?;
        at(&target, mount_bind(Path::new("/dev").join(name), &target))?;
    }
    for name in ["pts", "shm"] {
        folder(&dev.join(name))?;
    }
    let pts = dev.join("pts");
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
    at(&pts, mount("devpts", &pts, "devpts", flags, c"newinstance,ptmxmode=0666,mode=0620"))?;
    let shm = dev.join("shm");
    at(&shm, mount("tmpfs", &shm, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, c"mode=1777"))?;
    for (name, target) in [
        ("ptmx", "pts/ptmx"),
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
    ] {
        at(&dev, std::os::unix::fs::symlink(target, dev.join(name)))?;
    }
    Ok(())
}

/// Of this namespace alone: it shows no process of the machine.
fn proc(root: &Path) -> io::Result<()> {
    let proc = root.join("proc");
    folder(&proc)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    at(&proc, mount("proc", &proc, "proc", flags, c""))?;
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    for name in PROC_SETTINGS {
        let path = proc.join(name);
        if path.exists() {
            at(&path, mount_bind(&path, &path))?;
            make_read_only(&path)?;
        }
    }
    hide_kernel_files(root, &proc)
}

/// Covers what the kernel shows to root alone (its memory and messages), and the keys of the daemon's user.
fn hide_kernel_files(root: &Path, proc: &Path) -> io::Result<()> {
    let empty = root.join(EMPTY);
    for entry in fs::read_dir(proc)?.filter_map(Result::ok) {
        let Ok(meta) = entry.path().symlink_metadata() else { continue };
        let is_public = meta.mode() & 0o004 != 0 && !PROC_KEYS.iter().any(|name| entry.file_name() == *name);
        if meta.is_file() && !is_public {
            at(&entry.path(), mount_bind(&empty, entry.path()))?;
            make_read_only(&entry.path())?;
        }
    }
    Ok(())
}

fn temporary(root: &Path, tmp: &Path) -> io::Result<()> {
    for name in ["tmp", "var/tmp"] {
        let target = root.join(name);
        folder(&target)?;
        at(&target, mount_bind(tmp, &target))?;
        make_plain(&target)?;
    }
    for name in ["run", "run/lock", "home", "mnt"] {
        folder(&root.join(name))?;
    }
    let run = root.join("var/run");
    at(&run, std::os::unix::fs::symlink("/run", &run))
}

/// Names are still resolved where `/etc/resolv.conf` is a link into `/run`.
fn resolver(root: &Path) -> io::Result<()> {
    let Ok(real) = Path::new("/etc/resolv.conf").canonicalize() else { return Ok(()) };
    let target = inside(root, &real);
    if SYSTEM.iter().any(|name| real.starts_with(Path::new("/").join(name))) || target.exists() {
        return Ok(());
    }
    bind(&real, &target)?;
    make_read_only(&target)
}

fn add(root: &Path, entry: &Entry) -> io::Result<()> {
    match entry {
        Entry::Read(path) if path.exists() => {
            let target = inside(root, path);
            bind(path, &target)?;
            make_read_only(&target)
        }
        Entry::Write(path) if path.exists() => {
            let target = inside(root, path);
            bind(path, &target)?;
            make_plain(&target)
        }
        Entry::Read(_) | Entry::Write(_) => Ok(()),
        Entry::Real { path, writes } => real(path, &inside(root, path), *writes),
        Entry::Place { source, target } => {
            let target = inside(root, target);
            bind(source, &target)?;
            make_plain(&target)
        }
        Entry::Cover(_) => Ok(()),
        Entry::Layer { lower, upper, work, target } => layer(lower, upper, work, &inside(root, target)),
        Entry::Link { path, target } => {
            let link = inside(root, path);
            if link.symlink_metadata().is_ok() {
                return Ok(());
            }
            if let Some(parent) = link.parent() {
                folder(parent)?;
            }
            at(&link, std::os::unix::fs::symlink(target, &link))
        }
    }
}

/// With everything that is mounted below it.
fn bind(source: &Path, target: &Path) -> io::Result<()> {
    if source.is_dir() {
        folder(target)?
    } else {
        file(target)?
    }
    at(source, mount_bind_recursive(source, target))
}

/// What was opened is what is shown, whatever takes its place meanwhile.
fn real(source: &Path, target: &Path, writes: bool) -> io::Result<()> {
    let Some(opened) = at(source, open_real(source))? else { return Ok(()) };
    if rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(&opened)?.st_mode).is_dir() {
        folder(target)?;
    } else {
        file(target)?;
    }
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_RECURSIVE;
    let tree = at(source, open_tree(&opened, "", flags))?;
    at(source, move_mount(&tree, "", rustix::fs::CWD, target, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH))?;
    if writes { make_plain(target) } else { make_read_only(target) }
}

/// Hides what is there; a folder that was covered, to be closed at the end.
fn cover(target: &Path) -> io::Result<Option<PathBuf>> {
    let Ok(meta) = target.symlink_metadata() else { return Ok(None) };
    if meta.is_dir() {
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        at(target, mount("tmpfs", target, "tmpfs", flags, c"size=64k,mode=0755"))?;
        return Ok(Some(target.to_owned()));
    }
    if meta.is_file() {
        at(target, mount_bind("/dev/null", target))?;
        make_read_only(target)?;
    }
    // A link shows what it points to only if that is in the view, and then it is covered there.
    Ok(None)
}

/// Nothing more can be put into a covered folder. What is mounted below it keeps its own rules.
fn close_cover(target: &Path) -> io::Result<()> {
    let flags = MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV | MountFlags::BIND;
    at(target, rustix::mount::mount_remount(target, flags | MountFlags::RELATIME, c""))
}

/// The options go through `fsconfig`, one by one, so a comma in a path separates nothing.
fn layer(lower: &Path, upper: &Path, work: &Path, target: &Path) -> io::Result<()> {
    folder(target)?;
    let overlay = at(target, fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC))?;
    let escaped = lower.display().to_string().replace('\\', "\\\\").replace(':', "\\:");
    at(lower, fsconfig_set_string(&overlay, "lowerdir", escaped))?;
    at(upper, fsconfig_set_string(&overlay, "upperdir", upper))?;
    at(work, fsconfig_set_string(&overlay, "workdir", work))?;
    at(target, fsconfig_set_flag(&overlay, "userxattr"))?;
    at(target, fsconfig_create(&overlay))?;
    let flags = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    let mounted = at(target, fsmount(&overlay, FsMountFlags::FSMOUNT_CLOEXEC, flags))?;
    at(target, move_mount(&mounted, "", rustix::fs::CWD, target, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH))
}

/// The new root takes the place of the old one, which is gone afterwards.
fn enter(root: &Path) -> io::Result<()> {
    rustix::process::chdir(root)?;
    let _ = fs::remove_file(".empty");
    at(root, rustix::process::pivot_root(".", "."))?;
    at(root, unmount(".", UnmountFlags::DETACH))?;
    rustix::process::chdir("/")?;
    // The skeleton itself: what is mounted on it keeps its own rules.
    let flags = MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV | MountFlags::BIND;
    at(Path::new("/"), rustix::mount::mount_remount("/", flags | MountFlags::RELATIME, c""))
}
