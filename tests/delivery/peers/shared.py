"""What all peers share: places to work in, Claude Code with a scripted model, and what is counted."""

import json
import os
import pathlib
import shlex
import shutil
import signal
import tempfile
import time
import uuid

from home import kill
from report import BROKEN
from scripted import Delegation

# Never sent anywhere but to the scripted model.
KEY = "sk-test-0000000000000000000000000000"
WORKS = 3
AWAY = 10
# The work of a child. All begin with it at once, so that a fault hits all of them in their work.
GO = f"until [ -e ../go ]; do sleep 0.1; done; sleep {WORKS}"
# What was not shown so long after the fault and the next session is lost: longer than all retries of the peers.
LOST = 90
# A result that comes twice comes in this time.
AFTER = 8

# The same conversation goes on after the kill, instead of another session in the folder.
CONTINUED = "parent killed, conversation continued"
DELEGATE = "Delegate the work."
HELLO = "Hello."


class Place:
    """A home of its own, with Claude Code set up as after its first start, and a folder for each parent."""

    def __init__(self, tools):
        self.tools = tools
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="delivery-peers-"))
        self.env = {
            "HOME": str(self.folder),
            "PATH": os.pathsep.join([str(tools.agents), os.environ["PATH"]]),
            "LANG": "C.UTF-8",
            "SHELL": "/bin/bash",
            "TERM": "xterm-256color",
            "ANTHROPIC_API_KEY": KEY,
            "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            # Claude Code refuses to skip its questions for root without it.
            "IS_SANDBOX": "1",
        }

    def settle(self, url, folders):
        """What its user has answered at the first start: the theme, the key, and that these folders are trusted."""
        self.env["ANTHROPIC_BASE_URL"] = url
        trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
        answers = {
            "hasCompletedOnboarding": True,
            "theme": "dark",
            "numStartups": 3,
            "projects": {str(folder): trusted for folder in folders},
            "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
        }
        (self.folder / ".claude.json").write_text(json.dumps(answers))
        settings = {"skipDangerousModePermissionPrompt": True}
        (self.folder / ".claude").mkdir(exist_ok=True)
        (self.folder / ".claude/settings.json").write_text(json.dumps(settings))
        # A login shell begins with a path of its own.
        (self.folder / ".bash_profile").write_text(f"export PATH={shlex.quote(self.env['PATH'])}\n")

    def project(self, name):
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        return folder

    def close(self):
        """Ends what was started with this home and is still there: only this measurement has it in its environment."""
        for pid in owned_by(f"HOME={self.folder}"):
            kill(pid)
        time.sleep(0.5)
        shutil.rmtree(self.folder, ignore_errors=True)


def owned_by(setting):
    """The processes that have this in their environment."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if setting.encode() in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def tree(pid):
    """A process and all that it has started, the youngest first."""
    try:
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        children = []
    return [one for child in children for one in tree(int(child))] + [pid]


def works_in(pid, folder):
    try:
        return os.readlink(f"/proc/{pid}/cwd") == str(folder)
    except OSError:
        return False


def kill_alone(pids):
    """Parents first, so that none of them cleans up."""
    for pid in reversed(pids):
        kill(pid, signal.SIGKILL)


class Script:
    """A model for all parents and children of a round. Whose request it is, the folder in it tells."""

    def __init__(self, peer, fault, count):
        self.fault = fault
        self.all = [Delegation(fault, "", peer, f"result-{uuid.uuid4().hex}") for _ in range(count)]

    def name(self, one):
        return one.mark[7:19]

    def folder(self, one):
        return f"place-{self.name(one)}"

    def order(self, one):
        """The instructions of a child. The name of the result is not in it."""
        return f"Do the work work-{self.name(one)}."

    def __call__(self, asked):
        # Titles and the like are asked for without tools.
        if not asked.tools:
            return "A title."
        where = "\n".join([asked.system, *asked.messages[:2]])
        for one in self.all:
            if self.is_child(one, asked):
                return self.child(one, asked)
        for one in self.all:
            if self.folder(one) in where:
                self.note(one, asked)
                return self.parent(one, asked)
        return "I have nothing to do."

    def is_child(self, one, asked):
        return self.order(one) in asked.said and DELEGATE not in asked.said and HELLO not in asked.said

    def note(self, one, asked):
        """What this request shows to the parent."""
        if not one.delivered:
            if one.mark in asked.said:
                one.delivered = asked.at
            else:
                one.turns += 1
        one.duplicates = max(one.duplicates, sum(one.mark in text for text in asked.by_user) - 1)
        for other in self.all:
            if other is not one and other.mark in asked.said:
                other.wrong += 1


def run(script, model, tools, server, measure):
    """Measures one fault of a peer in a place of its own, and leaves nothing of it behind."""
    place = Place(tools)
    try:
        measure(script, server(tools, place), model, place)
    except Exception as error:  # noqa: BLE001  a broken measurement is said
        fail(script.all, error)
    finally:
        place.close()
        model.close()
    return script.all


def wait_until(look, within):
    ends = time.monotonic() + within
    while time.monotonic() < ends:
        found = look()
        if found:
            return found
        time.sleep(0.1)
    return None


def wait_for_delivery(all_, prompt=None):
    """Until all are delivered, and then for what comes twice. A parent that lives is given a prompt halfway."""
    wait_until(lambda: all(one.delivered for one in all_), LOST / 2)
    for one in all_:
        if prompt and not one.delivered:
            prompt(one)
    wait_until(lambda: all(one.delivered for one in all_), LOST / 2)
    time.sleep(AFTER)


def fail(all_, error, is_delivered=False):
    """A measurement that could not be made is said; it is not a lost result."""
    for one in all_:
        if is_delivered or not one.delivered:
            one.error = f"{BROKEN} {type(error).__name__}: {error}"
