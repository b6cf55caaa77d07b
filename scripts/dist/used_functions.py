"""Which functions a waiting Matsu uses: used_functions.py PROGRAM FILE writes their names, one on each line, sorted.

A daemon, a relay to it and a server without a daemon are run under valgrind, each with a client that greets, lists the
tools and calls one, in both eras of the protocol. The daemon also does a task that it gets over HTTP. Then they
wait for some seconds, so that what runs while nothing happens is in the list, too.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

program, out = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
START_MAX = 120
IDLE = 6
CLIENT = {"name": "build", "version": "1"}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": CLIENT,
}
CALL = {"name": "get_task_status", "arguments": {"task_id": "task_none"}}
LEGACY = [
    {"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": CLIENT}},
    {"method": "notifications/initialized"},
    {"id": 2, "method": "tools/list"},
    {"id": 3, "method": "tools/call", "params": CALL},
    {"id": 4, "method": "tools/call", "params": {"name": "get_task_status", "arguments": {}}},
]
MODERN = [
    {"id": 1, "method": "tools/list", "params": {"_meta": META}},
    {"id": 2, "method": "tools/call", "params": {**CALL, "_meta": META}},
    {"id": 3, "method": "tools/call", "params": {"name": "get_task_status", "arguments": {}, "_meta": META}},
]

scratch = Path(tempfile.mkdtemp(prefix="matsu-functions-"))
environment = {**os.environ, "HOME": str(scratch)}
for name in [name for name in environment if name.startswith(("XDG_", "MATSU_"))]:
    del environment[name]
traces = []


def traced(data, *arguments):
    """A command line that leaves a list of the functions it has called."""
    traces.append(scratch / f"trace-{len(traces)}")
    valgrind = ["valgrind", "--quiet", "--tool=callgrind", "--demangle=no", f"--callgrind-out-file={traces[-1]}"]
    return [*valgrind, program, "--data-dir", data, *arguments]


def talk(data, messages, *arguments):
    """A client over stdio, from its first message until some time after its last answer."""
    command = traced(data, "mcp", *arguments)
    server = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    for message in messages:
        server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        server.stdin.flush()
        while "id" in message:
            line = server.stdout.readline() or sys.exit("used_functions: the server ended before it had answered")
            if json.loads(line).get("id") == message["id"]:
                break
    time.sleep(IDLE)
    server.stdin.close()
    if server.wait(timeout=START_MAX) != 0:
        sys.exit(f"used_functions: the server ended with {server.returncode}")


def ask(data, path, body=None):
    """A request to the daemon over HTTP."""
    address = json.loads((data / "server.json").read_text())["address"]
    headers = {"authorization": f"Bearer {(data / 'token').read_text().strip()}", "content-type": "application/json"}
    content = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(address + path, content, headers), timeout=START_MAX) as answer:
        return json.load(answer)


def do_a_task(data):
    """A task of two jobs, from its submission until a list shows that it has ended."""
    jobs = [{"kind": "sleep", "input": {"ms": 20}}, {"kind": "noop"}]
    task = ask(data, "/test/tasks", {"jobs": jobs})["task"]["task_id"]
    end = time.monotonic() + START_MAX
    while ask(data, f"/api/v1/tasks/{task}")["finished_at"] is None:
        if time.monotonic() > end:
            sys.exit("used_functions: the task did not end")
        time.sleep(0.1)
    ask(data, "/api/v1/tasks")


def functions(trace):
    """The names in a trace: each is written out where it first occurs. Recursive calls have a number behind them."""
    found = re.findall(r"^c?fn=\(\d+\) (\S+)$", trace.read_text(), re.MULTILINE)
    return {re.sub(r"'\d+$", "", name) for name in found}


try:
    data = scratch / "daemon"
    daemon = subprocess.Popen(traced(data, "serve", "--test-jobs", "--port", "0"), env=environment, stdout=subprocess.DEVNULL)
    try:
        end = time.monotonic() + START_MAX
        while not (data / "server.json").exists():
            if time.monotonic() > end or daemon.poll() is not None:
                sys.exit("used_functions: the daemon did not start")
            time.sleep(0.1)
        do_a_task(data)
        talk(data, LEGACY)
        talk(data, MODERN)
    finally:
        daemon.terminate()
        daemon.wait(timeout=START_MAX)
    talk(scratch / "alone", MODERN, "--no-daemon")
    names = set().union(*(functions(trace) for trace in traces))
    out.write_text("".join(f"{name}\n" for name in sorted(names)))
finally:
    shutil.rmtree(scratch, ignore_errors=True)
