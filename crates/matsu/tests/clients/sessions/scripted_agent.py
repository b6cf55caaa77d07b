"""An agent without a model: authenticates, does what get_next_action says, stops when it is told to."""

import itertools
import json
import os
import sys
import time
import urllib.request

URL, AGENT = sys.argv[1:3]
IDS = itertools.count(1)


def call(tool, **arguments):
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "scripted", "version": "1"},
    }
    params = {"name": tool, "arguments": arguments, "_meta": meta}
    body = json.dumps({"jsonrpc": "2.0", "id": next(IDS), "method": "tools/call", "params": params})
    headers = {
        "Authorization": "Bearer " + os.environ["TOKEN"],
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": tool,
    }
    request = urllib.request.Request(URL, body.encode(), headers)
    text = urllib.request.urlopen(request, timeout=60).read().decode()
    lines = [line[5:] for line in text.splitlines() if line.startswith("data:") and "jsonrpc" in line]
    return json.loads(lines[-1] if lines else text)["result"]["structuredContent"]


def heed(token):
    """Reads its notifications and follows the first order to stop; says whether there was one."""
    for one in call("get_notifications", session_token=token)["notifications"]:
        if one["type"] == "interrupt":
            call("report_completed", session_token=token, result="blocked", summary="stopped as ordered")
            return True
    return False


def main():
    token = call("authenticate", agent_id=AGENT, passkey=os.environ["PASSKEY"], project_id="default")["session_token"]
    after = {}
    while True:
        said = call("get_next_action", session_token=token, timeout_seconds=20, **after)
        if said.get("interrupted"):
            if heed(token):
                return
        elif said["action"] == "respond":
            for message in said["messages"]:
                answer = "You said: " + message["content"]
                call("send_message", session_token=token, content=answer, reply_to=message["id"])
                after = {"after_seq": message["seq"]}
        elif said["action"] == "work":
            # Work that never ends by itself, with a call now and then.
            while not call("get_task_status", session_token=token).get("interrupted"):
                time.sleep(0.2)
            if heed(token):
                return
        elif said["action"] == "end_session":
            return


main()
