"""CLI Agent Orchestrator of AWS Labs: a supervisor and workers in panes of tmux, a server between them.

A supervisor delegates in one of two ways: `handoff` waits in the call, `assign` returns at once and the worker sends
its result by `send_message` to the supervisor's inbox."""

import re
import socket
import subprocess
import time
import urllib.request

from . import shared
from .model import Call, Model

NAME = "CLI Agent Orchestrator"
HOW = {
    "assign": (
        "`cao-server`, and with the provider `claude_code` a `code_supervisor` by `cao launch` that delegates to a "
        "`developer` by `assign`; the developer sends its result by `send_message` to the supervisor. All "
        "settings as they come. When the server is killed, the harness starts it again after a second, and a worker "
        "whose message is refused sends it again every three seconds, ten times. A parent that lives and was shown "
        "nothing for 45 s gets the prompt “Hello.” A next session is another `cao launch` in the same folder with the "
        "message “Hello.”; a conversation is continued with `--resume-session-id`"
    ),
    "handoff": (
        "as with `assign`, but by `handoff`, which waits for the end of the worker's turn and returns what it said. For "
        "the client timeout, Claude Code is set by `MCP_TOOL_TIMEOUT` to give up calls after two seconds"
    ),
}
SERVER = "mcp__cao-mcp-server__"
TOOLS = ["handoff", "assign", "send_message", "get_handoff_result"]
# So many at once: the server itself is busy with watching the panes.
PARALLEL = 3
QUESTION = "Shall I go on?"
ANSWER = "Yes, go on."

FAULTS = {
    "assign": ["none", "parent killed", shared.CONTINUED, "daemon killed", "both stopped", "question"],
    "handoff": ["none", "parent killed", shared.CONTINUED, "daemon killed", "both stopped", "client timeout"],
}
NOT_RUN = {
    "assign": {"client timeout": "the call returns at once; there is no waiting call to give up"},
    "handoff": {"question": "the supervisor is in its call until the worker ends its turn; it can be asked nothing"},
}


def name(way):
    return f"{NAME}, `{way}`"


class Script(shared.Script):
    def __init__(self, way, fault, count):
        super().__init__(name(way), fault, count)
        self.way = way
        self.working = set()
        self.answered = set()
        self.refused = {}

    def parent(self, one, asked):
        if one.delivered:
            return "It is done."
        last = asked.news
        if not one.began and shared.DELEGATE in asked.said:
            if SERVER + self.way not in asked.tools:
                return self.search()
            one.began, one.turns = asked.at, 1
            return Call(SERVER + self.way, {"agent_profile": "developer", "message": self.order(one)})
        if self.fault == "client timeout" and not one.hit and "timed out" in last:
            one.hit = asked.at
        if '"success":false' in last and one.mark not in self.working:
            # The worker did not start in its time, which a busy machine does. That is not what is measured.
            one.began, one.turns = asked.at, 1
            return Call(SERVER + self.way, {"agent_profile": "developer", "message": self.order(one)})
        if '"success":false' in last or "timed out" in last:
            one.by = "the parent read that its call failed"
        worker = re.search(r'terminal_id\W+([0-9a-f]{8})', last)
        if worker and not one.task_id:
            one.task_id = worker.group(1)
        if QUESTION in last and one.mark not in self.answered:
            self.answered.add(one.mark)
            one.hit = asked.at
            return Call(SERVER + "send_message", {"receiver_id": one.task_id, "message": ANSWER})
        job = re.search(r'job_id\W+([0-9a-f]{16,})', last)
        if job and ("pending" in last or "running" in last):
            # A model that is instructed to ask again does so now and then.
            time.sleep(2)
            return Call(SERVER + "get_handoff_result", {"job_id": job.group(1)})
        return "I wait for it."

    def search(self):
        """Claude Code tells its model only the names of such tools until it asks for them."""
        time.sleep(0.5)
        return Call("ToolSearch", {"query": "select:" + ",".join(SERVER + tool for tool in TOOLS)})

    def child(self, one, asked):
        send = SERVER + "send_message"
        if self.way == "assign" and send not in asked.tools:
            return self.search()
        if self.fault == "question" and ANSWER not in asked.said:
            if QUESTION in "\n".join(asked.messages):
                return "I wait for the answer."
            return Call(send, {"message": QUESTION})
        if one.mark not in self.working:
            self.working.add(one.mark)
            return Call("Bash", {"command": shared.GO, "description": "the work", "timeout": 600_000})
        if not one.ended:
            one.ended = asked.at
        if self.way == "handoff":
            return f"Done: {one.mark}"
        refused = self.refused.setdefault(one.mark, 0)
        if one.mark not in "\n".join(asked.messages):
            return Call(send, {"message": one.mark})
        said = "\n".join(asked.results)
        if '"success":false' in said.replace(" ", "") or "rror" in said:
            one.error = said[:200]
            if refused < 10:
                self.refused[one.mark] += 1
                time.sleep(3)
                return Call(send, {"message": one.mark})
        elif asked.results:
            one.error = ""
        return "I have sent the result."


class Server:
    """`cao-server` with a home, a port and a tmux of its own."""

    def __init__(self, tools, place):
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.place, self.process = place, None
        (place.folder / "tmux").mkdir()
        place.env["TMUX_TMPDIR"] = str(place.folder / "tmux")
        place.env["PATH"] = f"{tools.cao}:{place.env['PATH']}"
        place.env["CAO_API_PORT"] = str(self.port)

    def start(self):
        log = open(self.place.folder / "server.log", "a")
        self.process = subprocess.Popen(
            ["cao-server"], env=self.place.env, cwd=self.place.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
        if not shared.wait_until(self.is_ready, 60):
            raise TimeoutError("cao-server does not answer")

    def is_ready(self):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=2) as answer:
                return answer.status == 200
        except OSError:
            return False

    def kill(self):
        self.process.kill()
        self.process.wait()

    def run(self, *args, cwd=None):
        return subprocess.run(
            args, env=self.place.env, cwd=cwd or self.place.folder, capture_output=True, text=True, timeout=400
        )

    def launch(self, folder, session, message, *more):
        command = ["cao", "launch", "--agents", "code_supervisor", "--provider", "claude_code", "--headless", "--async"]
        return self.run(*command, "--auto-approve", "--session-name", session, *more, message, cwd=folder)

    def panes(self):
        """The session, the window and the shell of each pane."""
        listed = self.run("tmux", "list-panes", "-a", "-F", "#{session_name} #{window_name} #{pane_pid} #{pane_id}")
        return [line.split() for line in listed.stdout.splitlines()]

    def kill_supervisor(self, session):
        """Claude Code in the pane, and what it has started; the shell of the pane stays."""
        shared.kill_alone(shared.tree(self.pane(session)[0])[:-1])

    def pane(self, session):
        """The shell and the name of a supervisor's pane."""
        for where, window, pid, pane in self.panes():
            if where == f"cao-{session}" and window.startswith("code_supervisor"):
                return int(pid), pane
        raise LookupError(f"no pane of {session}")

    def shown(self, session):
        """What is on the screen of a supervisor's pane, and was before."""
        return self.run("tmux", "capture-pane", "-p", "-J", "-S", "-200", "-t", self.pane(session)[1]).stdout

    def type(self, session, text):
        """As a person does who looks at the supervisor."""
        pane = self.pane(session)[1]
        self.run("tmux", "send-keys", "-t", pane, "-l", text)
        time.sleep(0.5)
        self.run("tmux", "send-keys", "-t", pane, "Enter")


def conversation(place, one, script):
    """The session of Claude Code in which this was delegated."""
    for file in place.folder.glob(".claude/projects/*/*.jsonl"):
        text = file.read_text(errors="replace")
        if script.folder(one) in file.parent.name and shared.DELEGATE in text:
            return file.stem
    raise LookupError("no conversation of the supervisor was kept")


def run(tools, way, fault, count):
    script = Script(way, fault, count)
    return shared.run(script, Model(script), tools, Server, measure)


def measure(script, server, model, place):
    fault, all_ = script.fault, script.all
    place.settle(model.url, [place.project(script.folder(one)) for one in all_])
    for profile in ("code_supervisor", "developer"):
        server.run("cao", "install", profile, "--provider", "claude_code")
    server.start()
    more = ["--env", "MCP_TOOL_TIMEOUT=2000"] if fault == "client timeout" else []
    said = {}
    # One after the other: a start of Claude Code that takes a minute is given up by the server.
    for one in all_:
        said[one.mark] = server.launch(place.project(script.folder(one)), script.name(one), shared.DELEGATE, *more)
    if not shared.wait_until(lambda: len(script.working) == len(all_), 240):
        missing = [said[one.mark] for one in all_ if one.mark not in script.working]
        raise TimeoutError(f"{len(missing)} workers did not begin: {(missing[0].stdout + missing[0].stderr)[-200:]}")
    early = [one for one in all_ if one.ended]
    (place.folder / "go").touch()
    time.sleep(shared.WORKS / 3)
    strike(script, server, place)
    is_alive = fault in ("daemon killed", "client timeout")
    shared.wait_for_delivery(all_, (lambda one: server.type(script.name(one), shared.HELLO)) if is_alive else None)
    shared.fail(early, TimeoutError("it ended before the fault"), is_delivered=True)
    for one in all_:
        if fault.startswith("parent killed") and one.mark in server.shown(script.name(one)):
            one.by = "typed into the shell of the killed parent's pane"


def strike(script, server, place):
    fault, all_ = script.fault, script.all
    is_parent_hit = fault.startswith("parent killed") or fault == "both stopped"
    if fault in ("none", "question", "client timeout"):
        return
    now = time.time()
    for one in all_:
        one.hit = now
    if is_parent_hit:
        for one in all_:
            server.kill_supervisor(script.name(one))
    if fault in ("daemon killed", "both stopped"):
        server.kill()
        time.sleep(shared.AWAY if fault == "both stopped" else 1)
        server.start()
    if is_parent_hit:
        shared.wait_until(lambda: all(one.ended for one in all_), 30)
        time.sleep(2)
        for one in all_:
            more = ["--resume-session-id", conversation(place, one, script)] if fault == shared.CONTINUED else []
            server.launch(place.project(script.folder(one)), f"{script.name(one)}-2", shared.HELLO, *more)
