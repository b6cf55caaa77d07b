"""Scripted parents: MCP clients that do what a model does which follows the replies it gets, and nothing else.

Everything that a reply says would stand in the next request to a model; `seen` keeps it with its time."""

import http.client
import itertools
import json
import queue
import subprocess
import threading
import time
import urllib.parse

LEGACY = "2025-11-25"


class Gone(Exception):
    """The connection ended before the answer came."""


class TimedOut(Exception):
    """The client gave up the call."""


class Parent:
    """What all parents have: turns of the model, and what it was shown."""

    def __init__(self):
        self.turns = 0
        self.seen = []

    def call(self, tool, arguments, within=120):
        """One turn: the model calls a tool and reads the reply."""
        self.turns += 1
        reply = self.send("tools/call", {"name": tool, "arguments": arguments}, within)
        text = json.dumps(reply)
        self.seen.append((time.time(), text))
        if "error" in reply:
            return {"ok": False, "error": reply["error"].get("message", "")}
        return reply["result"].get("structuredContent") or {}

    def shown(self, mark):
        """When the model was shown this, each time."""
        return [at for at, text in self.seen if mark in text]


class Stdio(Parent):
    """`matsu mcp`, as a command line starts it in the folder it works in."""

    def __init__(self, home, project, name="delivery", hold=None):
        super().__init__()
        command = home.command("mcp", "--tools", "agents", "--root", ".")
        if hold:
            command += ["--hold", str(hold)]
        self.process = subprocess.Popen(
            command, env=home.env, cwd=project, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.ids = itertools.count(1)
        self.answers = {}
        self.lock = threading.Lock()
        threading.Thread(target=self._read, daemon=True).start()
        info = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": name, "version": "1"}}
        self.send("initialize", info, 60)
        self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def _read(self):
        for line in self.process.stdout:
            frame = json.loads(line)
            if "method" not in frame:
                self._answer(frame.get("id")).put(frame)
        with self.lock:
            waiting = list(self.answers.values())
        for box in waiting:
            box.put(None)

    def _answer(self, id_):
        with self.lock:
            return self.answers.setdefault(id_, queue.Queue())

    def _write(self, frame):
        try:
            self.process.stdin.write(json.dumps(frame).encode() + b"\n")
            self.process.stdin.flush()
        except (BrokenPipeError, ValueError) as error:
            raise Gone from error

    def send(self, method, params, within):
        id_ = next(self.ids)
        box = self._answer(id_)
        self._write({"jsonrpc": "2.0", "id": id_, "method": method, "params": params})
        try:
            frame = box.get(timeout=within)
        except queue.Empty:
            self._write({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id_}})
            raise TimedOut from None
        if frame is None:
            raise Gone
        return frame

    def kill(self):
        self.process.kill()
        self.process.wait()

    close = kill


class Http(Parent):
    """MCP over HTTP, by way of an address that can be cut."""

    def __init__(self, home, address):
        super().__init__()
        self.address, self.home = address, home
        self.session = None
        self.ids = itertools.count(1)
        self._begin()

    def _begin(self):
        self.session = None
        info = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "delivery", "version": "1"}}
        self.send("initialize", info, 60)
        self._post({"jsonrpc": "2.0", "method": "notifications/initialized"}, 60)

    def _post(self, frame, within):
        host = urllib.parse.urlsplit(self.address)
        connection = http.client.HTTPConnection(host.hostname, host.port, timeout=within)
        # The daemon looks at the name that it is called by; the way to it has another port.
        headers = {
            "Host": urllib.parse.urlsplit(self.home.server()["address"]).netloc,
            "Authorization": f"Bearer {self.home.token()}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": LEGACY,
        }
        if self.session:
            headers["Mcp-Session-Id"] = self.session
        try:
            connection.request("POST", "/mcp?tools=agents", json.dumps(frame), headers)
            answer = connection.getresponse()
            self.session = answer.getheader("Mcp-Session-Id") or self.session
            body = answer.read().decode()
        except TimeoutError:
            raise TimedOut from None
        except (OSError, http.client.HTTPException) as error:
            raise Gone from error
        finally:
            connection.close()
        if answer.status == 404 and self.session:
            raise Gone
        return body

    def send(self, method, params, within):
        id_ = next(self.ids)
        body = self._post({"jsonrpc": "2.0", "id": id_, "method": method, "params": params}, within)
        texts = [line[5:] for line in body.splitlines() if line.startswith("data:")] or [body]
        for text in texts:
            try:
                frame = json.loads(text)
            except ValueError:
                continue
            if frame.get("id") == id_:
                return frame
        raise Gone

    def close(self):
        pass
