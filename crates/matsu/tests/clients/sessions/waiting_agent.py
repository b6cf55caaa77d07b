"""An agent without a model that Matsu starts: finds its way back over MCP and does what get_next_action says.

A message is answered with its own words, but `crash unless FILE` ends it badly, and `nap N` sleeps and hears nothing.
"""

import itertools
import json
import os
import subprocess
import sys
import time

IDS = itertools.count(1)


class Matsu:
    def __init__(self):
        command = [os.environ["MATSU"], "--data-dir", os.environ["DATA"], "mcp"]
        self.server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        info = {"name": "waiting", "version": "1"}
        self.ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info})
        self.write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def write(self, frame):
        self.server.stdin.write(json.dumps(frame) + "\n")
        self.server.stdin.flush()

    def ask(self, method, params):
        number = next(IDS)
        self.write({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        for line in self.server.stdout:
            frame = json.loads(line)
            if frame.get("id") == number:
                return frame["result"]
        raise SystemExit("the server hung up")

    def call(self, tool, **arguments):
        return self.ask("tools/call", {"name": tool, "arguments": arguments})["structuredContent"]


def answer(matsu, message):
    word, _, rest = message["content"].partition(" ")
    if word == "crash" and not os.path.exists(rest.removeprefix("unless ")):
        os._exit(3)
    if word == "nap":
        subprocess.run(["setsid", "sleep", rest])
    matsu.call("send_message", content="You said: " + message["content"], reply_to=message["id"])


def heed(matsu):
    """Follows an order to stop; says whether the work is over."""
    given = matsu.call("get_notifications")["notifications"]
    if any(one["type"] == "interrupt" and one["action"] != "user_message" and one.get("task_id") for one in given):
        matsu.call("report_completed", result="blocked", summary="stopped as ordered")
        return True
    return False


def main():
    if sys.argv[1] == "mute":
        time.sleep(600)
    matsu = Matsu()
    after = {}
    while True:
        said = matsu.call("get_next_action", timeout_seconds=20, **after)
        if said.get("interrupted"):
            if heed(matsu):
                return
        elif said["action"] == "respond":
            for message in said["messages"]:
                answer(matsu, message)
                after = {"after_seq": message["seq"]}
        elif said["action"] == "work":
            # Work that never ends by itself, with a call now and then.
            while not matsu.call("get_task_status").get("interrupted"):
                time.sleep(0.2)
            if heed(matsu):
                return
        elif said["action"] == "end_session":
            print("told to end:", said["reason"])
            return


main()
