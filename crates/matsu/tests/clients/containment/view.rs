//! The view of a sealed run: it cannot be changed from inside, and holds nothing but what it needs.

use serde_json::json;

use super::{at_every_level, python};

#[test]
fn mounts_cannot_be_undone_from_inside() {
    at_every_level(|yard| {
        let token = yard.home.data_dir().join("token");
        let printed = yard.attack_in(
            if yard.is_sealed() { "." } else { "project" },
            &format!(
                "{}\ncat {token}\nunshare -Urm sh -c 'umount -l {data}; umount -R /; mount -t tmpfs x /tmp; cat {token}'\n\
                 chroot /proc/1/root cat {token}; nsenter -t 1 -m cat {token}; cat /proc/1/root{token}; cat /proc/self/mountinfo | wc -l",
                python(&format!(
                    r#"
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
for line in open("/proc/self/mountinfo").read().splitlines()[::-1]:
    path = line.split()[4].encode()
    if libc.umount2(path, 2) == 0:
        print("UNMOUNTED", path)
    if libc.mount(None, path, None, 32 | 4096, None) == 0:
        print("REMOUNTED", path)
for flags in (0x10000000 | 0x20000, 0x20000, 0x20000000):
    libc.unshare(flags)
    try:
        print(open({:?}).read())
    except OSError as error:
        print("refused", error.errno)
"#,
                    token.display().to_string()
                )),
                token = token.display(),
                data = yard.home.data_dir().display(),
            ),
            json!({}),
        );
        assert!(!printed.contains("UNMOUNTED") && !printed.contains("REMOUNTED"), "{}: {printed}", yard.show());
        assert!(!printed.contains(&yard.token()), "{}: {printed}", yard.show());
    });
}

#[test]
fn no_capability_is_left_and_none_comes_back() {
    at_every_level(|yard| {
        let printed = yard.attack("grep -E 'Cap(Eff|Prm|Bnd|Amb)|NoNewPrivs' /proc/self/status");
        // A user without rights cannot give up what might be had; without new privileges it never is.
        let is_given_up = |line: &&str| line.starts_with("Cap") && (yard.is_sealed() || !line.starts_with("CapBnd"));
        for line in printed.lines().filter(is_given_up) {
            assert!(line.ends_with("0000000000000000"), "{}: {printed}", yard.show());
        }
        assert!(printed.contains("NoNewPrivs:\t1"), "{printed}");
    });
}

#[test]
fn nothing_that_the_daemons_parent_left_open_reaches_a_run() {
    let left_open = std::fs::File::open("/").unwrap();
    rustix::io::fcntl_setfd(&left_open, rustix::io::FdFlags::empty()).unwrap();
    at_every_level(|yard| {
        let printed = yard.attack("for fd in /proc/self/fd/*; do [ -e $fd ] && readlink $fd; done; echo done");
        assert!(printed.contains("done"), "{printed}");
        assert!(!printed.lines().any(|line| line == "/"), "{}: {printed}", yard.show());
    });
}

#[test]
fn keys_of_the_login_session_cannot_be_reached() {
    at_every_level(|yard| {
        let printed = yard.attack(&python(
            r#"
import ctypes, os, platform
libc = ctypes.CDLL(None, use_errno=True)
keyctl, add_key, request_key = {"x86_64": (250, 248, 249)}.get(platform.machine(), (219, 217, 218))
for name, call in (
    ("keyctl", lambda: libc.syscall(keyctl, 0, -3, 0)),
    ("add_key", lambda: libc.syscall(add_key, b"user", b"matsu-test", b"x", 1, -3)),
    ("request_key", lambda: libc.syscall(request_key, b"user", b"matsu-test", None, -3)),
):
    result = call()
    print(name, "refused" if result == -1 and ctypes.get_errno() == 1 else "REACHED")
"#,
        ));
        assert_eq!(printed.matches("refused").count(), 3, "{}: {printed}", yard.show());
    });
}

#[test]
fn no_file_that_runs_as_its_owner_can_be_left_behind() {
    at_every_level(|yard| {
        let script = format!(
            "cp /bin/true a; chmod 4755 a; chmod 2755 a; chmod u+s a; install -m 6755 /bin/true b; chmod 755 a && echo plain\n{}",
            python(
                r#"
import os
for attempt in (
    lambda: os.open("c", os.O_CREAT | os.O_WRONLY, 0o4755),
    lambda: os.mknod("d", 0o104755),
    lambda: os.fchmod(os.open("e", os.O_CREAT | os.O_WRONLY, 0o755), 0o2755),
    lambda: os.chmod("e", 0o4755, dir_fd=os.open(".", os.O_RDONLY)),
    lambda: os.open(".", os.O_TMPFILE | os.O_WRONLY, 0o4755),
):
    try:
        attempt()
        print("MADE")
    except OSError as error:
        print("refused", error.errno)
"#
            )
        );
        let printed = yard.attack_in("project", &script, json!({ "mode": "workspace-write" }));
        assert!(printed.contains("plain") && !printed.contains("MADE"), "{}: {printed}", yard.show());
        assert_eq!(printed.matches("refused 1").count(), 5, "{}: {printed}", yard.show());
        for entry in std::fs::read_dir(&yard.project).unwrap() {
            let entry = entry.unwrap();
            let mode = std::os::unix::fs::PermissionsExt::mode(&entry.metadata().unwrap().permissions());
            assert_eq!(mode & 0o6000, 0, "{}: {entry:?}", yard.show());
        }
    });
}

#[test]
fn the_machine_cannot_be_changed_through_proc_sys_or_dev() {
    at_every_level(|yard| {
        if !yard.is_sealed() {
            return;
        }
        let before = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        let printed = yard.attack(
            "for f in /proc/sys/kernel/hostname /proc/sysrq-trigger /proc/sys/vm/drop_caches /sys/power/state \
             /sys/kernel/mm/ksm/run; do [ -e $f ] && (echo matsu > $f) 2>/dev/null && echo WROTE $f; done; \
             cat /etc/shadow /etc/gshadow 2>/dev/null | head -1; ls /dev; mknod /tmp/disk b 8 0 && echo MADE; \
             ls /run /home /mnt /tmp; ls -la /root 2>&1 | head -3; \
             [ \"$(id -u)\" = 0 ] && keys='keys key-users'; \
             for f in kcore kmsg timer_list vmallocinfo slabinfo pagetypeinfo $keys; do \
             [ \"$(timeout 2 head -c 1 /proc/$f 2>/dev/null | wc -c)\" = 0 ] || echo READ $f; done",
        );
        assert!(!printed.contains("READ"), "{}: {printed}", yard.show());
        assert!(!printed.contains("WROTE") && !printed.contains("MADE"), "{}: {printed}", yard.show());
        assert!(!printed.contains("root:"), "{}: password hashes: {printed}", yard.show());
        assert_eq!(std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap(), before);
    });
}

#[test]
fn sockets_and_files_of_other_programs_do_not_exist() {
    let folder = tempfile::Builder::new().prefix("matsu-other-program").tempdir().unwrap();
    let socket = folder.path().join("agent.sock");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    at_every_level(|yard| {
        if !yard.is_sealed() {
            return;
        }
        let printed =
            yard.attack(&format!("ls {0} && echo REACHED; ls /tmp; [ -S {0} ] && echo REACHED", socket.display()));
        assert!(!printed.contains("REACHED"), "{printed}");
    });
}

#[test]
fn programs_still_find_what_they_need() {
    at_every_level(|yard| {
        // A fenced run has no terminals: it could open the user's as well.
        let terminal = if yard.is_sealed() { "os.openpty()" } else { "pass" };
        let script = format!(
            "set -e; ls /usr >/dev/null; cat /etc/hostname /etc/passwd >/dev/null; echo x > $TMPDIR/x; cat $TMPDIR/x; \
             python3 -c 'import os, socket, tempfile; tempfile.mkstemp(); {terminal}; print(\"py\")'; \
             (sleep 0.1; exit 3) & wait $! || echo code=$?; echo to > /dev/null; head -c 4 /dev/urandom | wc -c; \
             git --version; id -u; echo all"
        );
        let printed = yard.attack_in("project", &script, json!({}));
        for word in ["x\n", "py", "code=3", "git version", "all"] {
            assert!(printed.contains(word), "{}: {word}: {printed}", yard.show());
        }
    });
}
