"""A legacy MCP server that takes nothing before the handshake. A client that skips it gets an error, and the server ends."""

import json
import sys
import time

greeted = False

# `--slow`: each start takes longer than a client waits for the answer about the era.
if sys.argv[1:2] == ["--slow"]:
    time.sleep(11)


def answer(request, **fields):
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **fields}), flush=True)


for line in sys.stdin:
    request = json.loads(line)
    method = request.get("method")
    if method == "initialize":
        info = {"name": "strict", "version": "1"}
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
        answer(request, result=result)
    elif method == "notifications/initialized":
        greeted = True
    elif method == "server/discover":
        answer(request, error={"code": -32601, "message": "no such method"})
    elif "id" not in request:
        continue
    elif not greeted:
        answer(request, error={"code": -32600, "message": "not initialized"})
        sys.exit(1)
    elif method == "tools/list":
        schema = {"type": "object", "properties": {}}
        answer(request, result={"tools": [{"name": "ping_me", "inputSchema": schema}]})
    else:
        answer(request, error={"code": -32601, "message": "no such method"})
