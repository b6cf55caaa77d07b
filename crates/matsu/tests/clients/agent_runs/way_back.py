"""What an agent's program does with the way back it was given: tools by name, called over MCP on stdio, answers printed.

    way_back.py NAME JSON [NAME JSON ...]      the structured half of each answer, a line each
    way_back.py --root DIR NAME JSON …         the same with a folder of its own choice
    way_back.py tools                          the names it is offered
    way_back.py token                          its token, and whether any argument of any process shows it
    way_back.py rest '[[METHOD, PATH, BODY] …]'  status and answer of each, a line each; OWN is the first chat it opened
"""

import glob
import http.client
import json
import os
import socket
import subprocess
import sys


def ask(server, number, method, params):
    frame = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    server.stdin.write(json.dumps(frame) + "\n")
    server.stdin.flush()
    for line in server.stdout:
        frame = json.loads(line)
        if frame.get("id") == number:
            return frame.get("result") or frame
    raise SystemExit("the server hung up")


def arguments_show(secret):
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, "rb") as file:
                if secret.encode() in file.read():
                    return True
        except OSError:
            pass
    return False


class Local(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(os.environ["DATA"] + "/matsu.sock")


def rest(requests):
    own = ""
    headers = {"Authorization": "Bearer " + os.environ["MATSU_SESSION_TOKEN"], "Content-Type": "application/json"}
    for method, path, body in requests:
        connection = Local("localhost")
        connection.request(method, path.replace("OWN", own), json.dumps(body) if body else None, headers)
        answer = connection.getresponse()
        said = json.loads(answer.read() or b"{}")
        own = own or said.get("chat_id", "")
        print(json.dumps({"status": answer.status, "said": said}))


def main():
    if sys.argv[1] == "rest":
        rest(json.loads(sys.argv[2]))
        return
    if sys.argv[1] == "token":
        token = os.environ["MATSU_SESSION_TOKEN"]
        # Backwards: as it is, it would be redacted.
        print(json.dumps({"backwards": token[::-1], "plain": token, "in_argv": arguments_show(token)}))
        return
    command = [os.environ["MATSU"], "--data-dir", os.environ["DATA"], "mcp"]
    if sys.argv[1] == "--root":
        command += sys.argv[1:3]
        del sys.argv[1:3]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    info = {"name": "way-back", "version": "1"}
    ask(server, 1, "initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info})
    server.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
    if sys.argv[1] == "tools":
        print(json.dumps([tool["name"] for tool in ask(server, 2, "tools/list", {})["tools"]]))
        return
    for number, (name, arguments) in enumerate(zip(sys.argv[1::2], sys.argv[2::2]), 2):
        said = ask(server, number, "tools/call", {"name": name, "arguments": json.loads(arguments)})
        print(json.dumps(said.get("structuredContent", said)), flush=True)
    server.stdin.close()
    server.wait()


main()
