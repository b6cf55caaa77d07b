"""Delegations by scripted parents, each hit by one fault between its start and its delivery.

A parent starts an agent, waits for it, and is shown the result. After the fault it, or the next session in its folder,
does what the replies tell it to do. Whatever it is shown is kept, so that a result that comes twice, too late or to
another parent is found."""

import dataclasses
import json
import threading
import time
import uuid

from cut import Cable
from home import until
from parents import Gone, Http, Stdio, TimedOut


ORPHAN = "question, parent killed"


@dataclasses.dataclass
class Delegation:
    fault: str
    store: str
    client: str
    mark: str
    task_id: str = ""
    began: float = 0.0
    hit: float = 0.0
    ended: float = 0.0
    delivered: float = 0.0
    by: str = ""
    turns: int = 0
    duplicates: int = 0
    wrong: int = 0
    error: str = ""

    def is_hit(self):
        """Whether the fault came between the start and the delivery."""
        return self.fault == "none" or (self.began < self.hit and (not self.delivered or self.hit < self.delivered))


def script(fault, mark, seconds):
    """The agent and what it does. Its text does not have the mark whole, so that only a result shows it."""
    head, tail = mark[:8], mark[8:]
    if fault == "quota":
        # It goes on in the conversation whose name carries the rest.
        limit = '{"type":"result","error":"usage limit reached, try again in 2 seconds"}'
        return "events", f"""printf '{{"type":"session","id":"talk-%s%s"}}\\n' '{head}' '{tail}'; echo '{limit}'"""
    if fault in ("question", ORPHAN):
        ask = '{"type":"question","id":"q1","text":"Go on?","options":["yes","no"]}'
        say = f"""printf '{{"type":"result","text":"%s%s"}}\\n' '{head}' '{tail}'"""
        # An orphan asks after its parent is gone.
        first = seconds * 0.7 if fault == ORPHAN else 0.5
        return "events", f"sleep {first}; echo '{ask}'; read answer; sleep {seconds / 3}; {say}"
    return "script", f"sleep {seconds}; printf '%s%s' '{head}' '{tail}'"


class Round:
    """Some parents at once, in a folder each, and one fault for all of them."""

    def __init__(self, home, store, fault, size, seconds, away):
        self.home, self.fault, self.seconds, self.away = home, fault, seconds, away
        self.cable = None
        if fault == "network cut":
            self.cable = Cable(int(home.server()["address"].rsplit(":", 1)[1]))
        client = "scripted (HTTP)" if self.cable else "scripted (stdio)"
        self.all = [Delegation(fault, store, client, f"result-{uuid.uuid4().hex}") for _ in range(size)]
        self.projects = [home.project(one.mark) for one in self.all]
        self.parents = [self.parent(project) for project in self.projects]
        self.older = []

    def parent(self, project):
        return Http(self.home, self.cable.address) if self.cable else Stdio(self.home, project)

    def run(self):
        self.each(self.start)
        waiting = [threading.Thread(target=self.guarded, args=(self.wait, n)) for n in range(len(self.all))]
        for thread in waiting:
            thread.start()
        # All are in their first wait by now; the agents work for longer than this.
        time.sleep(self.seconds / 3)
        self.strike()
        for thread in waiting:
            thread.join()
        self.each(self.probe)
        self.judge()
        for parent in self.parents + self.older:
            parent.close()
        if self.cable:
            self.cable.close()
        return self.all

    def each(self, what):
        threads = [threading.Thread(target=self.guarded, args=(what, n)) for n in range(len(self.all))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def guarded(self, what, n):
        try:
            what(n)
        except Exception as error:  # noqa: BLE001  a broken measurement is a lost delegation with a reason
            self.all[n].error = self.all[n].error or f"{type(error).__name__}: {error}"

    def start(self, n):
        one = self.all[n]
        agent, message = script(self.fault, one.mark, self.seconds)
        one.began = time.time()
        said = self.parents[n].call("use_agent", {"cli_name": agent, "message": message, "run_async": True})
        if not said.get("task_id"):
            raise RuntimeError(f"not started: {said}")
        one.task_id = said["task_id"]

    def strike(self):
        now = time.time()
        if self.fault in ("parent killed", ORPHAN):
            for parent in self.parents:
                parent.kill()
        elif self.fault == "daemon killed":
            self.home.kill_daemon()
        elif self.fault == "both stopped":
            for parent in self.parents:
                parent.kill()
            self.home.kill_daemon()
        elif self.fault == "network cut":
            if self.cable.cut() < len(self.parents):
                raise RuntimeError("some parents had no connection to cut")
            time.sleep(1)
            self.cable.mend()
        if self.fault not in ("none", "client timeout", "quota", "question"):
            for one in self.all:
                one.hit = now

    def wait(self, n):
        """Until the result was shown, as a model waits that is instructed to call again."""
        one, parent = self.all[n], self.parents[n]
        ends = time.monotonic() + 120 + self.away
        patience = 1.0 if self.fault == "client timeout" else 120
        while time.monotonic() < ends:
            try:
                said = parent.call("get_task_status", {"task_id": one.task_id, "timeout": 100}, patience)
            except TimedOut:
                one.hit = one.hit or time.time()
                # From now on the client waits as long as it must.
                patience = 120 if time.time() - one.began > self.seconds * 0.7 else 1.0
                continue
            except Gone:
                if self.fault in ("parent killed", "both stopped", ORPHAN):
                    return self.next_session(n)
                time.sleep(0.3)
                continue
            if self.note(n, parent):
                return None
            self.answer(one, parent, said)
        return None

    def answer(self, one, parent, said):
        question = said.get("question")
        if question:
            one.hit = one.hit or time.time()
            named = {"task_id": one.task_id, "job_id": question["job_id"], "question_id": question["id"]}
            parent.call("answer_question", {**named, "option": "yes"})
        if self.fault == "quota" and said.get("status") in ("queued", "running"):
            one.hit = one.hit or time.time()

    def next_session(self, n):
        """Another session in the same folder, after the agent has ended. It gets no message from a person."""
        one, project = self.all[n], self.projects[n]
        time.sleep(self.away if self.fault == "both stopped" else self.seconds)
        parent = Stdio(self.home, project)
        parent.turns = self.parents[n].turns
        self.older.append(self.parents[n])
        self.parents[n] = parent
        until("the agent has ended or asks", lambda: is_news(self.home.task(one.task_id)))
        if n % 2:
            # A client with hooks: the line stands in the request that the person's next prompt makes.
            said = self.home.run("hook", "prompt", cwd=project, stdin='{"hook_event_name":"UserPromptSubmit"}')
            parent.seen.append((time.time(), said))
            if self.note(n, parent, "hook"):
                return self.read(one, parent)
        said = parent.call("list_agents", {"probe": False})
        if said.get("news"):
            parent.call("get_task_status", {})
        return self.read(one, parent) if self.note(n, parent, "news") else None

    def read(self, one, parent):
        """What the session does with an id that it was shown: it answers what is asked, and reads the result."""
        ends = time.monotonic() + 60
        while not parent.shown(one.mark) and time.monotonic() < ends:
            self.answer(one, parent, parent.call("get_task_status", {"task_id": one.task_id, "timeout": 30}))

    def note(self, n, parent, by="wait"):
        """Whether the result, or to a session that did not start it its id, was shown."""
        one = self.all[n]
        shown = parent.shown(one.mark) or (parent.shown(one.task_id) if by != "wait" else [])
        if shown and not one.delivered:
            one.delivered, one.by = shown[0], by
        return bool(shown)

    def probe(self, n):
        """Three more calls: the first acknowledges, and the others must show nothing of it again."""
        one, parent = self.all[n], self.parents[n]
        one.turns = parent.turns
        if not one.delivered:
            return
        parent.call("list_agents", {"probe": False})
        acknowledged = time.time()
        for _ in range(2):
            said = parent.call("list_agents", {"probe": False})
            if said.get("news"):
                parent.call("get_task_status", {})
        said = self.home.run("hook", "prompt", cwd=self.projects[n], stdin='{"hook_event_name":"UserPromptSubmit"}')
        parent.seen.append((time.time(), said))
        again = [text for at, text in parent.seen if at > acknowledged and is_news_of(text, one)]
        one.duplicates = len(again)

    def judge(self):
        """What was shown to a parent that did not start it, and when each agent ended."""
        for n, one in enumerate(self.all):
            ended = (self.home.task(one.task_id) or {}).get("finished_at")
            one.ended = seconds_of(ended) if ended else 0.0
            others = [parent for m, parent in enumerate(self.parents) if m != n]
            one.wrong = sum(bool(parent.shown(one.task_id) or parent.shown(one.mark)) for parent in others)
            if self.fault == "quota" and not one.hit:
                # It has waited for its quota although no reply said so: the run took longer than its two attempts.
                one.hit = one.began + 0.001 if one.ended - one.began >= 2 else 0.0


def is_news(task):
    return bool(task) and (task["finished_at"] or task["status"] == "input_required")


def is_news_of(text, one):
    """A list that names a task as read is no news; its result, or its id as unread, is."""
    if one.mark in text:
        return True
    if one.task_id not in text:
        return False
    try:
        listed = json.loads(text)["result"]["structuredContent"]["tasks"]
    except (ValueError, KeyError, TypeError):
        return True
    return any(task["task_id"] == one.task_id and task["unread"] for task in listed)


def seconds_of(timestamp):
    import datetime

    return datetime.datetime.fromisoformat(timestamp.replace("Z", "+00:00")).timestamp()


FAULTS = [
    "none",
    "parent killed",
    "daemon killed",
    "both stopped",
    "client timeout",
    "network cut",
    "quota",
    "question",
    ORPHAN,
]
