"""How many turns of a model a wait costs: scripted clients that give themselves a known name and have its limits, with
the plain entry of the README."""

import dataclasses
import json
import threading
import time

from home import Home
from parents import Gone, Stdio, TimedOut

# As the clients name themselves, and after how many seconds they give up a call with their default settings: the same
# table, with the same dates, is in crates/matsu-server/src/limits/holds.rs. None: no limit was found.
CLIENTS = [
    ("claude-code", None),
    ("codex-mcp-client", 300),
    ("gemini-cli-mcp-client", 600),
    ("Visual Studio Code", None),
    ("Cursor", 60),
    ("another client", 60),
]


@dataclasses.dataclass
class Waited:
    client: str
    limit: float
    seconds: float
    turns: int
    cut: int
    is_delivered: bool


def wait(home, name, limit, seconds, found):
    parent = Stdio(home, home.project(name.replace(" ", "-")), name=name)
    mark = f"waited-for-{name}"
    message = f"sleep {seconds}; printf '%s-%s' 'waited-for' '{name}'"
    task = parent.call("use_agent", {"cli_name": "script", "message": message, "run_async": True, "timeout": seconds + 600})
    began, cut, said = time.monotonic(), 0, {}
    parent.turns = 0
    while not parent.shown(mark) and time.monotonic() - began < seconds + 300:
        try:
            said = parent.call("get_task_status", {"task_id": task["task_id"], "timeout": 3600}, limit or seconds + 300)
        except TimedOut:
            cut += 1
        except Gone:
            break
    is_delivered = bool(parent.shown(mark))
    # The turn that has the answer is no waiting.
    found.append(Waited(name, limit, seconds, parent.turns - 1, cut, is_delivered))
    if not is_delivered:
        print("not delivered:", name, json.dumps(said)[:300])
    parent.close()


def measure(binary, seconds):
    """All of them at once, on one daemon."""
    home, found = Home(binary), []
    try:
        home.serve()
        threads = [threading.Thread(target=wait, args=(home, *client, seconds, found)) for client in CLIENTS]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        home.close()
    order = [name for name, _ in CLIENTS]
    return sorted(found, key=lambda one: order.index(one.client))


def read(file):
    """What this program has printed."""
    if not file:
        return []
    with open(file) as opened:
        return [Waited(**one) for one in json.load(opened)]


if __name__ == "__main__":
    import sys

    done = measure(sys.argv[1], float(sys.argv[2]))
    print(json.dumps([dataclasses.asdict(one) for one in done], indent=1))
