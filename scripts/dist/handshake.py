"""Starts an MCP server as a client does, calls a tool, and checks the version: handshake.py VERSION COMMAND…"""

import json
import subprocess
import sys

version, command = sys.argv[1], sys.argv[2:]
server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def send(message):
    server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    server.stdin.flush()


def ask(number, method, params):
    send({"id": number, "method": method, "params": params})
    for line in server.stdout:
        answer = json.loads(line)
        if answer.get("id") == number:
            assert "result" in answer, answer
            return answer["result"]
    sys.exit(f"handshake: {command[0]} ended before it answered {method}")


client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "dist-test", "version": "1"}}
found = ask(1, "initialize", client)["serverInfo"]
assert (found["name"], found["version"]) == ("matsu", version), found
send({"method": "notifications/initialized"})
tools = [tool["name"] for tool in ask(2, "tools/list", {})["tools"]]
assert {"use_agent", "get_task_status"} <= set(tools), tools
answer = ask(3, "tools/call", {"name": "get_task_status", "arguments": {}})
assert json.loads(answer["content"][0]["text"])["total"] == 0, answer
server.stdin.close()
status = server.wait(timeout=60)
assert status == 0, status
print(f"{len(tools)} tools, one called")
