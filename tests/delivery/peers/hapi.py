"""hapi: a hub that sessions of agents can be watched and typed to from elsewhere, and a runner that starts them.

An agent cannot start another with it. It can send a message to a session that is there, by the tool `ping_peer`; so a
person starts a parent and a worker, and the parent gives the work away by a message and gets the result by one."""

import json
import re
import socket
import subprocess
import time
import urllib.error
import urllib.request

from home import kill

from . import shared
from .model import Call, Model

NAME = "hapi, `ping_peer`"
HOW = (
    "`hapi hub` and its runner; parent and worker are sessions of Claude Code that the hub's API starts, as its page "
    "does (an agent cannot start one in this version), without questions about permissions. The parent sends the work "
    "to the worker by `ping_peer`, and the worker the result to the parent by `ping_peer`, which is said to wake a "
    "session that has ended. When the hub is killed, the harness starts it again after a second. A worker whose message "
    "is refused sends it again every three seconds, ten times, to the id that `list_peers` shows for the parent if the "
    "old one is not known any more. A parent that lives and was shown nothing for 45 s gets the message “Hello.” "
    "A next session is another one in the same folder with the message “Hello.”, started when the worker has "
    "sent its result; a conversation is continued by the hub's `resume`, when the hub has seen that the session has "
    "ended. “Noticed before the end”: the worker is not done before the hub has seen that"
)
TOOL = "mcp__hapi__ping_peer"
LIST = "mcp__hapi__list_peers"
TOKEN = "token-of-the-measurement-0000000000000000"
QUESTION = "Shall I go on?"
ANSWER = "Yes, go on."

NOTICED = "parent killed, noticed before the end"

PARALLEL = 5
FAULTS = ["none", "parent killed", shared.CONTINUED, NOTICED, "daemon killed", "both stopped", "question"]
NOT_RUN = {"client timeout": "`ping_peer` returns at once; there is no waiting call to give up"}


class Script(shared.Script):
    def __init__(self, fault, count):
        super().__init__(NAME, fault, count)
        # The sessions of the parents, as they are known now and as they were at first.
        self.parents, self.first = {}, {}
        self.working, self.answered, self.sent = set(), set(), set()
        self.refused = {}

    def is_child(self, one, asked):
        where = "\n".join([asked.system, *asked.messages[:2]])
        return f"worker-{self.name(one)}" in where and self.order(one) in asked.said

    def parent(self, one, asked):
        if one.delivered:
            return "It is done."
        if not one.began and shared.DELEGATE in asked.said:
            if TOOL not in asked.tools:
                return search()
            one.began, one.turns = asked.at, 1
            to = f"Send what you have to say to /sessions/{self.parents[one.mark]} by ping_peer."
            return self.ping(one.task_id, f"{self.order(one)} {to}")
        if QUESTION in asked.news and one.mark not in self.answered:
            self.answered.add(one.mark)
            one.hit = asked.at
            return self.ping(one.task_id, ANSWER)
        return "I wait for it."

    def listed(self, one, said):
        """The id under which a list of sessions has the parent: its title is still the prompt, with the first id."""
        for line in said.splitlines():
            found = re.match(r"\s*([0-9a-f]{8}-[0-9a-f-]{27})\s+active=", line)
            if found and shared.DELEGATE in line and self.first[one.mark] in line:
                return found.group(1)
        return None

    def ping(self, session, message):
        return Call(TOOL, {"sessionIdPrefix": session, "message": message})

    def child(self, one, asked):
        if TOOL not in asked.tools:
            return search()
        parent, before = self.parents[one.mark], "\n".join(asked.messages)
        if self.fault == "question" and ANSWER not in asked.said:
            return "I wait for the answer." if QUESTION in before else self.ping(parent, QUESTION)
        if one.mark not in self.working:
            self.working.add(one.mark)
            return Call("Bash", {"command": shared.GO, "description": "the work", "timeout": 600_000})
        one.ended = one.ended or asked.at
        if one.mark not in before:
            return self.ping(parent, one.mark)
        said = "\n".join(asked.results)
        refused = self.refused.setdefault(one.mark, 0)
        listed = self.listed(one, said)
        if listed:
            self.parents[one.mark] = listed
            return self.ping(listed, one.mark)
        if "Failed" in said or "rror" in said:
            one.error = one.error or re.sub(r"\s+", " ", said)[:200]
            if refused < 10:
                self.refused[one.mark] += 1
                time.sleep(3)
                # A session that is not known may have come back under another id, as the list of sessions shows.
                is_unknown = "no session" in said or "not found" in said
                return Call(LIST, {}) if is_unknown else self.ping(self.parents[one.mark], one.mark)
        elif asked.results:
            one.error, one.by = "", "the worker read that its message was delivered"
        self.sent.add(one.mark)
        return "I have sent the result."


def search():
    """Claude Code tells its model only the names of such tools until it asks for them."""
    time.sleep(0.5)
    return Call("ToolSearch", {"query": f"select:{TOOL},{LIST}"})


class Hub:
    def __init__(self, tools, place):
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.place, self.hub, self.runner, self.token = place, None, None, None
        place.env["PATH"] = f"{tools.hapi}:{place.env['PATH']}"
        place.env["HAPI_LISTEN_PORT"] = str(self.port)
        place.env["HAPI_API_URL"] = f"http://127.0.0.1:{self.port}"
        place.env["CLI_API_TOKEN"] = TOKEN

    def spawn(self, *args):
        log = open(self.place.folder / f"{args[0]}.log", "a")
        return subprocess.Popen(
            ["hapi", *args], env=self.place.env, cwd=self.place.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )

    def start(self):
        self.hub = self.spawn("hub")
        if not shared.wait_until(lambda: self.ask("GET", "/health").get("status") == "ok", 60):
            raise TimeoutError("the hub does not answer")
        self.token = self.ask("POST", "/api/auth", {"accessToken": TOKEN})["token"]

    def start_runner(self):
        self.runner = self.spawn("runner", "start-sync")
        found = shared.wait_until(lambda: self.ask("GET", "/api/machines").get("machines"), 60)
        if not found:
            raise TimeoutError("the runner does not come to the hub")
        self.machine = found[0]["id"]

    def kill(self):
        shared.kill_alone(shared.tree(self.hub.pid))
        self.hub.wait()

    def ask(self, method, path, body=None):
        headers = {"content-type": "application/json"}
        if self.token:
            headers["authorization"] = f"Bearer {self.token}"
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(self.place.env["HAPI_API_URL"] + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=90) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            return {"error": error.read().decode(errors="replace")[:300]}
        except OSError as error:
            return {"error": str(error)}

    def session(self, folder):
        body = {"directory": str(folder), "agent": "claude", "permissionMode": "bypassPermissions"}
        said = self.ask("POST", f"/api/machines/{self.machine}/spawn", body)
        if "sessionId" not in said:
            raise RuntimeError(f"no session: {said}")
        if not shared.wait_until(lambda: self.is_active(said["sessionId"], False), 30):
            raise TimeoutError("a session that was started is not active")
        return said["sessionId"]

    def is_active(self, session, otherwise=True):
        return self.ask("GET", f"/api/sessions/{session}").get("session", {}).get("active", otherwise)

    def resume(self, session):
        """As the page does for a session that the hub knows to have ended, which takes it a while."""
        shared.wait_until(lambda: not self.is_active(session), 90)
        said = self.ask("POST", f"/api/sessions/{session}/resume", {})
        if "sessionId" not in said:
            raise RuntimeError(f"not resumed: {said}")
        return said["sessionId"]

    def say(self, session, text):
        said = self.ask("POST", f"/api/sessions/{session}/messages", {"text": text})
        if not said.get("ok"):
            raise RuntimeError(f"not sent: {said}")

    def process(self, folder):
        """The process of hapi that works in this folder, started by the runner."""
        for pid in shared.tree(self.runner.pid):
            if shared.works_in(pid, folder):
                yield pid


def run(tools, fault, count):
    script = Script(fault, count)
    return shared.run(script, Model(script), tools, Hub, measure)


def measure(script, hub, model, place):
    fault, all_ = script.fault, script.all
    folders = {one.mark: place.project(script.folder(one)) for one in all_}
    workers = {one.mark: place.project(f"worker-{script.name(one)}") for one in all_}
    place.settle(model.url, [*folders.values(), *workers.values()])
    hub.start()
    hub.start_runner()
    for one in all_:
        one.task_id = hub.session(workers[one.mark])
        script.parents[one.mark] = script.first[one.mark] = hub.session(folders[one.mark])
    for one in all_:
        ids = f"You are /sessions/{script.parents[one.mark]}, the worker is /sessions/{one.task_id}."
        hub.say(script.parents[one.mark], f"{shared.DELEGATE} {ids}")
    if not shared.wait_until(lambda: len(script.working) == len(all_), 240):
        raise TimeoutError(f"only {len(script.working)} of {len(all_)} workers began")
    if fault == NOTICED:
        # The work is not done before the hub has seen that the parents are gone.
        strike(script, hub, folders)
        for one in all_:
            shared.wait_until(lambda: not hub.is_active(script.parents[one.mark]), 90)
        (place.folder / "go").touch()
    else:
        (place.folder / "go").touch()
        time.sleep(shared.WORKS / 3)
        strike(script, hub, folders)
    is_alive = fault == "daemon killed"
    shared.wait_for_delivery(all_, (lambda one: hub.say(script.parents[one.mark], shared.HELLO)) if is_alive else None)


def strike(script, hub, folders):
    fault, all_ = script.fault, script.all
    if fault in ("none", "question"):
        return
    is_parent_hit = fault != "daemon killed"
    now = time.time()
    for one in all_:
        one.hit = now
        if is_parent_hit:
            for pid in hub.process(folders[one.mark]):
                kill(pid)
    if fault in ("daemon killed", "both stopped"):
        hub.kill()
        time.sleep(shared.AWAY if fault == "both stopped" else 1)
        hub.start()
    if is_parent_hit and fault != NOTICED:
        shared.wait_until(lambda: len(script.sent) == len(all_), 60)
        time.sleep(2)
        for one in all_:
            if not one.delivered and fault == shared.CONTINUED:
                hub.say(hub.resume(script.parents[one.mark]), shared.HELLO)
            elif not one.delivered:
                hub.say(hub.session(folders[one.mark]), shared.HELLO)
