#!/usr/bin/env python3
"""Records the first minute as an asciinema cast, by typing the commands into a real terminal.

    scripts/recording.py MATSU [OUT]     OUT: docs/images/first-minute.cast

MATSU is a built binary; `target/source/matsu` after `make run`. Nothing of this user's settings is read or written. The
cast is replayed by `asciinema play`. Pauses longer than two seconds are cut to two.
"""

import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COLUMNS, ROWS = 110, 34
PROMPT = "\x1b[1;32m$\x1b[0m "
MARK = "\x1b[1;32m$\x1b[0m"
PAUSE_MAX = 2.0
COMMANDS = [
    "matsu doctor",
    "matsu setup --yes",
    "matsu demo",
    'matsu research "How long are unread results kept?" --dir docs',
    "matsu tasks",
    "matsu connect --undo",
]


class Cast:
    def __init__(self, hidden):
        self.events, self.began, self.hidden = [], time.monotonic(), hidden
        # The end of what was read, if a hidden path may begin there: it can arrive in two pieces.
        self.rest = ""

    def add(self, data):
        text = self.rest + data.decode(errors="replace")
        for path, shown in self.hidden:
            text = text.replace(path, shown)
        lengths = (n for path, _ in self.hidden for n in range(1, len(path)) if text.endswith(path[:n]))
        whole = len(text) - max(lengths, default=0)
        self.rest = text[whole:]
        self.events.append([time.monotonic() - self.began, text[:whole]])

    def write(self, path):
        self.events.append([time.monotonic() - self.began, self.rest])
        at, last = 0.0, 0.0
        lines = [json.dumps({"version": 2, "width": COLUMNS, "height": ROWS, "title": "Matsu: the first minute"})]
        for when, text in self.events:
            at += min(when - last, PAUSE_MAX)
            last = when
            lines.append(json.dumps([round(at, 3), "o", text], ensure_ascii=False))
        path.write_text("\n".join(lines) + "\n")
        return at


def read_until_prompt(terminal, cast, limit):
    seen, end = "", time.monotonic() + limit
    while time.monotonic() < end:
        if select.select([terminal], [], [], 0.1)[0]:
            data = os.read(terminal, 65536)
            cast.add(data)
            seen += data.decode(errors="replace")
        elif seen.endswith(PROMPT):
            return seen
    sys.exit(f"recording: no prompt within {limit} s; the end of what was shown: {seen[-500:]}")


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    matsu = Path(sys.argv[1]).resolve()
    out = Path(sys.argv[2] if len(sys.argv) > 2 else ROOT / "docs/images/first-minute.cast")
    scratch = Path(tempfile.mkdtemp(prefix="matsu-recording"))
    home = scratch / "home"
    (home / "bin").mkdir(parents=True)
    (home / "bin/matsu").symlink_to(matsu)
    # One AI client is there for Matsu to be added to.
    (home / ".claude.json").write_text("{}\n")
    shutil.copytree(ROOT / "docs", home / "matsu/docs")
    environment = {
        "HOME": str(home), "PATH": f"{home}/bin:/usr/local/bin:/usr/bin:/bin", "TERM": "xterm-256color", "LANG": "C.UTF-8",
        "PS1": r"\[\e[1;32m\]$\[\e[0m\] ", "COLUMNS": str(COLUMNS), "LINES": str(ROWS),
    }
    server = subprocess.Popen(
        [str(matsu), "serve", "--port", "0"], env=environment, cwd=home, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        announced = home / ".local/share/matsu/server.json"
        while not announced.exists():
            if server.poll() is not None:
                sys.exit("recording: matsu serve has ended")
            time.sleep(0.05)
        child, terminal = pty.fork()
        if child == 0:
            os.chdir(home / "matsu")
            os.execve("/bin/bash", ["bash", "--norc", "--noprofile", "-i"], environment)
        import fcntl
        import struct
        import termios
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        cast = Cast([(str(matsu), "/usr/local/bin/matsu"), (str(home), "/home/you")])
        read_until_prompt(terminal, cast, 10)
        for command in COMMANDS:
            for letter in command:
                os.write(terminal, letter.encode())
                time.sleep(0.03)
                if select.select([terminal], [], [], 0.05)[0]:
                    cast.add(os.read(terminal, 65536))
            time.sleep(0.3)
            os.write(terminal, b"\n")
            read_until_prompt(terminal, cast, 180)
            # For the reader.
            time.sleep(1.5)
        status = b"exit\n"
        os.write(terminal, status)
        os.waitpid(child, 0)
        seconds = cast.write(out)
        text = out.read_text()
        if str(scratch) in text or re.search(r"command not found|panicked", text):
            sys.exit(f"recording: {out} shows what it must not; look at it")
        print(f"recording: {out}: {seconds:.0f} s, {len(COMMANDS)} commands, {out.stat().st_size} bytes")
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait()
        shutil.rmtree(scratch)


if __name__ == "__main__":
    main()
