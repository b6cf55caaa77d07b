"""A home of its own for one measurement: a store, a daemon, and agents whose message is a script of the shell."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

AGENTS = {
    # What it prints is the result.
    "script": 'name = "script"\ncommand = "/bin/sh"\nargs = ["{prompt_file}"]\nprompt = "file"\noutput = "text"\n',
    # Speaks in events: it can ask, and run out of quota. The session's name carries what it says when it goes on.
    "events": 'name = "events"\ncommand = "/bin/sh"\nargs = ["{prompt_file}"]\nprompt = "file"\noutput = "events"\n'
    "go_on = '''echo \"{\\\"type\\\":\\\"result\\\",\\\"text\\\":\\\"${2#talk-}\\\"}\"'''\n"
    '[session]\nresume = { args = ["resume", "{session}"] }\n[quota]\npatterns = ["usage limit"]\n',
}


class Home:
    """One user's home on one store."""

    def __init__(self, binary, store_url=None, slots=16):
        self.binary = os.path.abspath(binary)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="matsu-delivery-"))
        self.data = self.folder / "data"
        self.daemon = None
        agents = self.folder / ".config/matsu/agents"
        agents.mkdir(parents=True)
        for name, text in AGENTS.items():
            (agents / f"{name}.toml").write_text(text)
        store = f'[store]\nurl = "{store_url}"\n' if store_url else ""
        settings = f"{store}[slots]\nagent_cli = {slots}\n[server]\nport = 0\n"
        (self.folder / ".config/matsu/config.toml").write_text(settings)
        self.env = {"HOME": str(self.folder), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}

    def command(self, *args):
        return [self.binary, "--data-dir", str(self.data), *args]

    def project(self, name):
        """A folder that a parent works in."""
        folder = self.folder / "projects" / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def serve(self):
        log = open(self.folder / "daemon.log", "a")
        self.daemon = subprocess.Popen(
            self.command("serve"), env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
        until("the daemon announces itself", lambda: (self.server() or {}).get("pid") == self.daemon.pid)

    def server(self):
        """What the daemon that serves here has announced."""
        try:
            return json.loads((self.data / "server.json").read_text())
        except (OSError, ValueError):
            return None

    def token(self):
        return (self.data / "token").read_text().strip()

    def kill_daemon(self):
        """As a power cut would, however it was started."""
        pid = (self.server() or {}).get("pid")
        if pid:
            kill(pid)
        if self.daemon:
            self.daemon.wait()
            self.daemon = None

    def run(self, *args, cwd=None, stdin=""):
        done = subprocess.run(
            self.command(*args), env=self.env, cwd=cwd, input=stdin, capture_output=True, text=True, timeout=60
        )
        return done.stdout

    def task(self, task_id):
        """As a person looks at it: this reads no result."""
        listed = json.loads(self.run("tasks", "--json"))["items"]
        return next((task for task in listed if task["task_id"] == task_id), None)

    def close(self):
        self.data.mkdir(parents=True, exist_ok=True)
        # No supervisor that is left alone may start another daemon.
        (self.data / "stopped").write_text("")
        self.kill_daemon()
        time.sleep(0.2)
        shutil.rmtree(self.folder, ignore_errors=True)


def kill(pid, sig=signal.SIGKILL):
    try:
        os.kill(pid, sig)
    except ProcessLookupError:
        pass


def until(what, look, within=60):
    """Looks again and again. What does not come in time is an error of the measurement, not a lost result."""
    ends = time.monotonic() + within
    while time.monotonic() < ends:
        found = look()
        if found:
            return found
        time.sleep(0.02)
    raise TimeoutError(f"not within {within} s: {what}")
