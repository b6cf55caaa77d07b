"""The official Python SDK against a running Matsu: stdio and HTTP, both eras of the protocol.

    python_sdk.py DATA_DIR MATSU

A daemon with test jobs must serve DATA_DIR. Fails with the first thing that is not as it should be.
"""

import asyncio
import json
import subprocess
import sys
import time
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2 as httpx
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

DATA, MATSU = Path(sys.argv[1]), sys.argv[2]
ADDRESS = json.loads((DATA / "server.json").read_text())["address"]
KEY = {"authorization": "Bearer " + (DATA / "token").read_text().strip()}
MODES = ("legacy", "auto")
TOOLS = ["get_task_status", "cancel_task"]

# The two halves of a reply; some clients show a model only one of them.
READERS = {
    "content": lambda reply: json.loads("".join(block.text for block in reply.content)),
    "structured": lambda reply: reply.structured_content,
}


def submit(**job):
    body = {"jobs": [{"kind": "sleep", "input": job}]}
    answer = httpx.post(ADDRESS + "/test/tasks", headers=KEY, json=body)
    answer.raise_for_status()
    return answer.json()["task"]["task_id"]


def waiters():
    text = httpx.get(ADDRESS + "/metrics", headers=KEY).text
    lines = [line for line in text.splitlines() if line.startswith("matsu_waiters")]
    return sum(float(line.split()[-1]) for line in lines)


def matsu(*args):
    ran = subprocess.run([MATSU, "--data-dir", DATA, "--json", *args], check=True, capture_output=True, text=True)
    return json.loads(ran.stdout)


@asynccontextmanager
async def connected(transport, mode, headers=KEY):
    if transport == "stdio":
        target = StdioServerParameters(command=MATSU, args=["--data-dir", str(DATA), "mcp", "--tools", "all"])
        async with Client(target, mode=mode) as client:
            yield client
        return
    async with httpx.AsyncClient(headers=headers, timeout=60) as http:
        async with Client(streamable_http_client(ADDRESS + "/mcp", http_client=http), mode=mode) as client:
            yield client


async def lists(client, mode):
    assert client.server_info.name == "matsu", client.server_info
    assert (client.protocol_version >= "2026-07-28") == (mode == "auto"), client.protocol_version
    assert "get_task_status" in client.instructions
    tools = (await client.list_tools()).tools
    names = [tool.name for tool in tools]
    assert [name for name in names if name in TOOLS] == TOOLS, names
    for tool in tools:
        assert tool.description and tool.input_schema and tool.output_schema and tool.annotations, tool


async def flow(client, read):
    """Start, lose the id, find it, wait, read, cancel: from one half of each reply alone."""
    task = submit(ms=3000)
    listed = read(await client.call_tool("get_task_status", {}))
    assert listed["ok"] and task in [line["task_id"] for line in listed["tasks"]], listed
    since = listed["next"]["since"][task]
    began = time.monotonic()
    ended = read(await client.call_tool("get_task_status", {"task_id": task, "timeout": 20, "since": since}))
    assert time.monotonic() - began < 8, "a wait must wake when its task ends"
    assert ended["status"] == "completed" and "3000" in ended["result"], ended
    assert ended["returned_because"] in ("changed", "terminal") and ended["waited_ms"] > 0, ended
    again = read(await client.call_tool("get_task_status", {"task_ids": [task]}))
    assert again["tasks"][0]["status"] == "completed", again

    long = submit(ms=600_000)
    gone = read(await client.call_tool("cancel_task", {"task_id": long, "mode": "immediate"}))
    assert gone["ok"] and gone["status"] == "cancelled" and gone["task_id"] == long, gone

    failing = submit(nonsense=True)
    failed = await client.call_tool("get_task_status", {"task_id": failing, "timeout": 20, "since": 1})
    assert not failed.is_error and read(failed)["status"] == "failed", failed
    assert "nonsense" in read(failed)["error"] and read(failed)["error_code"], failed


async def shows_progress(client):
    received = []

    async def hear(progress, total, message):
        received.append((progress, message))

    task = submit(ms=1200)
    asked = {"task_id": task, "timeout": 20, "since": 1, "wait_for": "finished"}
    reply = await client.call_tool("get_task_status", asked, progress_callback=hear)
    assert reply.structured_content["status"] == "completed", reply
    assert received and "of 1 jobs done" in received[0][1], received


async def refuses(client, read):
    unknown_field = await client.call_tool("get_task_status", {"task_id": "x", "wait": 3})
    said = read(unknown_field)
    assert unknown_field.is_error and said["ok"] is False and said["error_code"] == "INVALID_PARAMS", said
    assert "wait" in said["error"] and said["error_id"].startswith("err_"), said
    out_of_range = read(await client.call_tool("get_task_status", {"task_id": "x", "timeout": 99_999}))
    details = out_of_range["details"]
    assert details["param_name"] == "timeout" and details["expected"] and details["received"] == "99999", details
    missing = read(await client.call_tool("cancel_task", {}))
    assert missing["details"]["param_name"] == "task_id", missing
    unknown_task = read(await client.call_tool("cancel_task", {"task_id": "task_nope"}))
    assert unknown_task["error_code"] == "TASK_NOT_FOUND", unknown_task
    read_unknown = await client.call_tool("get_task_status", {"task_id": "task_nope", "timeout": 30})
    assert not read_unknown.is_error and read(read_unknown)["status"] == "not_found", read_unknown


async def cut(client):
    """A wait that the client gives up leaves the work alone. Returns the task, which still runs."""
    task = submit(ms=600_000)
    try:
        await client.call_tool("get_task_status", {"task_id": task, "timeout": 40, "since": 1}, read_timeout_seconds=1)
    except Exception as error:  # noqa: BLE001: each era and transport has its own
        assert "time" in str(error).lower(), repr(error)
    else:
        raise AssertionError("the client's own limit did not hold")
    status = (await client.call_tool("get_task_status", {"task_id": task})).structured_content["status"]
    assert status == "running", status
    return task


def unread(task):
    answer = httpx.get(f"{ADDRESS}/api/v1/tasks/{task}", headers=KEY)
    answer.raise_for_status()
    return answer.json()["unread"]


async def reads_with_its_last_call(transport, mode):
    """Nothing follows the reply, and the client closes the connection as soon as it has it: the result is read."""
    tasks = [submit(ms=1) for _ in range(10)]
    for task in tasks:
        async with connected(transport, mode) as client:
            reply = await client.call_tool("get_task_status", {"task_id": task, "timeout": 10, "wait_for": "all"})
            assert reply.structured_content["status"] == "completed", reply
    began = time.monotonic()
    while left := [task for task in tasks if unread(task)]:
        assert time.monotonic() - began < 5, f"{transport} {mode}: {len(left)} of 10 results count as unread"
        await asyncio.sleep(0.05)


async def drive(transport, mode):
    async with connected(transport, mode) as client:
        await lists(client, mode)
        await asyncio.gather(
            flow(client, READERS["content"]),
            flow(client, READERS["structured"]),
            shows_progress(client),
            refuses(client, READERS["content"]),
            refuses(client, READERS["structured"]),
        )
        task = await cut(client)
        began = time.monotonic()
        # While the client is still connected: what ended the wait is the cut, not the end of the connection.
        while waiters() > 0:
            assert time.monotonic() - began < 5, f"{transport} {mode}: {waiters()} waiters were left behind"
            await asyncio.sleep(0.05)
    matsu("stop", task, "--now")
    await reads_with_its_last_call(transport, mode)
    print("ok:", transport, mode, flush=True)


async def refuses_revoked_tokens(mode):
    made = matsu("token", "new", f"revoked {mode}")
    headers = {"authorization": "Bearer " + made["secret"]}
    async with connected("http", mode, headers) as client:
        await client.call_tool("get_task_status", {})
        matsu("token", "revoke", made["token"]["id"])
        try:
            reply = await asyncio.wait_for(client.call_tool("get_task_status", {}), 10)
        except Exception:  # noqa: BLE001: refused is refused
            pass
        else:
            raise AssertionError(f"a revoked token still opens: {reply}")
    print("ok: revoked token", mode, flush=True)


async def main():
    for mode in MODES:
        for transport in ("stdio", "http"):
            await drive(transport, mode)
        await refuses_revoked_tokens(mode)


if __name__ == "__main__":
    asyncio.run(main())
