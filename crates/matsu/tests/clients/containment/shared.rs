//! What a run that has no namespaces of its own shares with the machine: processes and their limits, terminals, shared
//! memory, control groups. And folders so deep that their removal could end the daemon.

use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use serde_json::json;

use super::{SECRET, Yard, at_every_level, at_levels, python};

/// The daemon serves, and its runs end as they should.
fn assert_unharmed(yard: &mut Yard, daemon: u32) {
    assert_eq!(yard.home.relayed().0, daemon, "{}: the daemon is another one", yard.show());
    let printed = yard.attack("echo still here");
    assert!(printed.contains("still here"), "{}: {printed}", yard.show());
}

#[test]
fn limits_and_priorities_of_other_processes_cannot_be_changed() {
    at_every_level(|yard| {
        let (daemon, _) = yard.home.relayed();
        let printed = yard.attack(&python(&format!(
            r#"
import ctypes, os, resource
libc = ctypes.CDLL(None, use_errno=True)
def attempt(name, *call):
    print(name, "DONE" if libc.syscall(*call) == 0 else "refused")
pids = [{daemon}, os.getppid()]
for entry in os.listdir("/proc"):
    try:
        if b"__supervise" in open(f"/proc/{{entry}}/cmdline", "rb").read():
            pids.append(int(entry))
    except (OSError, ValueError):
        pass
size = (ctypes.c_ulong * 2)(1 << 40, 1 << 40)
for pid in pids:
    if not os.path.exists(f"/proc/{{pid}}") or pid == os.getppid() and {is_sealed}:
        continue
    attempt("prlimit", 302, pid, 1, ctypes.byref(size), None)
    attempt("setpriority", 141, 0, pid, 19)
    attempt("ioprio_set", 251, 1, pid, 3 << 13)
print("own", resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 0, os.nice(0))
"#,
            is_sealed = if yard.is_sealed() { "True" } else { "False" },
        )));
        assert!(!printed.contains("DONE"), "{}: {printed}", yard.show());
        assert!(printed.contains("own True"), "{}: its own limits are its own: {printed}", yard.show());
        assert_unharmed(yard, daemon);
    });
}

#[test]
fn control_groups_cannot_be_mounted() {
    at_every_level(|yard| {
        let (daemon, _) = yard.home.relayed();
        let printed = yard.attack(&python(
            r#"
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
NEWUSER, NEWNS, NEWCGROUP = 0x10000000, 0x00020000, 0x02000000
print("unshare", "DONE" if libc.unshare(NEWCGROUP | NEWUSER | NEWNS) == 0 else "refused")
libc.unshare(NEWUSER | NEWNS)
print("unshare", "DONE" if libc.unshare(NEWCGROUP) == 0 else "refused")
os.makedirs("/tmp/groups", exist_ok=True)
for kind in (b"cgroup2", b"cgroup"):
    print("mount", "DONE" if libc.mount(kind, b"/tmp/groups", kind, 0, b"pids" if kind == b"cgroup" else None) == 0 else "refused")
"#,
        ));
        assert!(printed.contains("refused") && !printed.contains("DONE"), "{}: {printed}", yard.show());
        assert_unharmed(yard, daemon);
    });
}

#[test]
fn terminals_and_shared_memory_of_the_user_cannot_be_opened() {
    at_every_level(|yard| {
        let name = format!("matsu-test-{}", std::process::id());
        let shm = std::path::Path::new("/dev/shm").join(&name);
        std::fs::write(&shm, SECRET).unwrap();
        std::fs::set_permissions(&shm, std::fs::Permissions::from_mode(0o666)).unwrap();
        // A terminal and a segment of the user's own, held as long as the input of the holder is open.
        let holder = r#"
import ctypes, os, pty, sys
_, terminal = pty.openpty()
os.fchmod(terminal, 0o666)
libc = ctypes.CDLL(None)
segment = libc.shmget(0, 4096, 0o1666)
print(os.ttyname(terminal), segment, flush=True)
sys.stdin.read()
libc.shmctl(segment, 0, None)
"#;
        let mut command = yard.home.of_its_user("/usr/bin/python3");
        command.args(["-c", holder]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut held = command.spawn().unwrap();
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(held.stdout.take().unwrap()), &mut line).unwrap();
        let (terminal, segment) = line.trim().split_once(' ').unwrap();
        let printed = yard.attack(&python(&format!(
            r#"
import ctypes, os
for path in ("{terminal}", "{shm}"):
    for flags in (os.O_RDONLY, os.O_WRONLY):
        try:
            opened = os.open(path, flags | os.O_NOCTTY | os.O_NONBLOCK)
            print("OPENED" if os.fstat(opened).st_ino == {ino} or "pts" in path and {is_fenced} else "its own", path)
        except OSError as error:
            print("refused", path, error.errno)
try:
    open("/dev/shm/{name}-planted", "w").write("planted")
except OSError as error:
    print("refused", error.errno)
libc = ctypes.CDLL(None)
libc.shmat.restype = ctypes.c_void_p
print("ATTACHED" if libc.shmat({segment}, None, 0) != ctypes.c_void_p(-1).value else "no segment")
print("MADE" if {is_fenced} and libc.shmget(0, 4096, 0o1600) >= 0 else "none made")
"#,
            shm = shm.display(),
            ino = std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(&shm).unwrap()),
            is_fenced = if yard.is_sealed() { "False" } else { "True" },
        )));
        drop(held.stdin.take());
        held.wait().unwrap();
        let planted = shm.with_file_name(format!("{name}-planted"));
        let is_planted = planted.exists();
        let _ = std::fs::remove_file(&planted);
        std::fs::remove_file(&shm).unwrap();
        for word in ["OPENED", "ATTACHED", "MADE"] {
            assert!(!printed.contains(word), "{}: {printed}", yard.show());
        }
        assert!(!is_planted, "{}: {printed}", yard.show());
    });
}

/// Removed by recursion, such a folder ends the daemon by its stack, at every start again.
#[test]
fn folders_deeper_than_any_path_do_not_end_the_daemon() {
    at_levels(&["sealed"], &|_| (), |yard| {
        let git = yard.home.of_its_user("git").current_dir(&yard.project).args(["init", "-q"]).status();
        assert!(git.unwrap().success());
        let (daemon, _) = yard.home.relayed();
        let nest = |below: &str| {
            python(&format!(
                "import os\nos.chdir(os.path.expandvars('{below}'))\nfor _ in range(12000):\n    os.mkdir('d'); os.chdir('d')\nprint('NESTED')"
            ))
        };
        let printed = yard.attack(&nest("$TMPDIR"));
        assert!(printed.contains("NESTED"), "{}: {printed}", yard.show());
        assert_unharmed(yard, daemon);
        let more = json!({ "mode": "workspace-write", "isolation": "worktree" });
        let begun = yard.start("project", &nest("$PWD"), more);
        yard.end_of(&begun["task_id"]);
        assert_unharmed(yard, daemon);
        // What could not be taken over is kept, and the removal of this home would meet it.
        let kept = yard.home.data_dir().join("worktrees");
        assert!(std::process::Command::new("rm").arg("-rf").arg(kept).status().unwrap().success());
    });
}

/// Git looks into submodules when the user asks for the status of the tree, and obeys what it finds there.
#[test]
fn no_repository_can_be_put_where_a_submodule_is() {
    at_every_level(|yard| {
        let project = yard.project.clone();
        let planted = yard.home.path("PLANTED");
        let run = |folder: &std::path::Path, args: &[&str]| {
            let mut git = yard.home.of_its_user("git");
            git.current_dir(folder).args(["-c", "protocol.file.allow=always", "-c", "user.name=x", "-c"]);
            let done = git.args(["user.email=x@localhost"]).args(args).output().unwrap();
            assert!(done.status.success(), "git {args:?}: {done:?}");
        };
        let inner = yard.home.path("inner");
        std::fs::create_dir_all(&inner).unwrap();
        yard.home.give_away();
        run(&inner, &["init", "-q"]);
        run(&inner, &["commit", "-q", "--allow-empty", "-m", "inner"]);
        run(&project, &["init", "-q"]);
        for path in ["deep/fetched", "unfetched"] {
            run(&project, &["submodule", "add", "-q", inner.to_str().unwrap(), path]);
        }
        run(&project, &["commit", "-q", "-m", "with submodules"]);
        run(&project, &["submodule", "deinit", "-q", "-f", "unfetched"]);
        let script = format!(
            r#"plant() {{ mkdir -p "$1" && cd "$1" && git init -q . && git config core.fsmonitor "touch {planted}; true" &&
    git -c user.name=x -c user.email=x@localhost commit -q --allow-empty -m x; }}
(mv deep/fetched deep/away; plant deep/fetched); (mv deep gone; plant deep/fetched)
(plant unfetched); (mv unfetched away2; plant unfetched); (rmdir unfetched; plant unfetched)
echo written > unfetched/file; ls -la . deep"#,
            planted = planted.display()
        );
        let printed = yard.attack_in("project", &script, json!({ "mode": "workspace-write" }));
        let mut status = yard.home.of_its_user("git");
        let status = status.current_dir(&project).args(["status", "--short"]).output().unwrap();
        assert!(!planted.exists(), "{}: {printed}\n{status:?}", yard.show());
        assert!(!project.join("unfetched/.git").exists(), "{}: {printed}", yard.show());
        assert!(project.join("deep/fetched/.git").is_file(), "{}: {printed}", yard.show());
    });
}
