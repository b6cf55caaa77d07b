"""The official Python SDK calls every tool of a running Matsu: stdio and HTTP, both eras of the protocol.

    every_tool.py DATA_DIR MATSU

The SDK refuses a reply that does not fit the tool's output schema; this checks errors against it too. The calls are in
every_tool.json, which the TypeScript SDK follows as well.
"""

import asyncio
import json
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2 as httpx
import jsonschema
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

DATA, MATSU = Path(sys.argv[1]), sys.argv[2]
ADDRESS = json.loads((DATA / "server.json").read_text())["address"]
KEY = {"authorization": "Bearer " + (DATA / "token").read_text().strip()}
STEPS = json.loads((Path(__file__).parent / "every_tool.json").read_text())


@asynccontextmanager
async def connected(transport, mode):
    if transport == "stdio":
        target = StdioServerParameters(command=MATSU, args=["--data-dir", str(DATA), "mcp", "--tools", "all"])
        async with Client(target, mode=mode) as client:
            yield client
        return
    async with httpx.AsyncClient(headers=KEY, timeout=60) as http:
        async with Client(streamable_http_client(ADDRESS + "/mcp?tools=all", http_client=http), mode=mode) as client:
            yield client


def post(path, **body):
    answer = httpx.post(ADDRESS + "/api/v1" + path, headers=KEY, json=body)
    answer.raise_for_status()
    return answer.json()


def people(name):
    """An agent with a message in its chat, and one with a task."""
    known = {}
    for role in ("chatter", "worker"):
        known[role] = f"{name}-{role}"
        known[role + "_key"] = post("/agents", id=known[role], name=known[role])["passkey"]
    chat = post("/chats", agent_id=known["chatter"], project_id="default")["chat_id"]
    post(f"/chats/{chat}/messages", content="Hello?")
    post("/tasks", kind="agent", message="Do it.", agent_id=known["worker"])
    return known


def filled(value, known):
    if isinstance(value, str):
        return known[value[1:]] if value.startswith("$") else value
    if isinstance(value, dict):
        return {name: filled(each, known) for name, each in value.items()}
    return [filled(each, known) for each in value] if isinstance(value, list) else value


def at(value, path):
    for part in path.split("."):
        value = value[int(part)] if part.isdigit() else value[part]
    return value


async def drive(transport, mode):
    known = people(f"py-{transport}-{mode}")
    async with connected(transport, mode) as client:
        schemas = {tool.name: tool.output_schema for tool in (await client.list_tools()).tools}
        for step in STEPS:
            reply = await client.call_tool(step["tool"], filled(step["arguments"], known))
            said = reply.structured_content
            assert json.loads(reply.content[0].text) == said, said
            jsonschema.Draft202012Validator(schemas[step["tool"]]).validate(said)
            assert said.get("error_code") == step.get("refused") or "refused" not in step, (step, said)
            assert reply.is_error == ("refused" in step), (step, said)
            known |= {name: at(said, path) for name, path in step.get("keep", {}).items()}
        missing = schemas.keys() - {step["tool"] for step in STEPS}
        assert not missing, missing
        print(f"ok: {transport} {mode}: {len(schemas)} tools, {len(STEPS)} calls", flush=True)


async def main():
    await asyncio.gather(*(drive(transport, mode) for mode in ("legacy", "auto") for transport in ("stdio", "http")))


asyncio.run(main())
