"""FastMCP as a peer: one tool that answers from memory what Matsu reads from its store.

    fastmcp_server.py stdio
    fastmcp_server.py http PORT
"""

import sys

from fastmcp import FastMCP
from pydantic import BaseModel

server = FastMCP("peer")


class Next(BaseModel):
    since: int


class Status(BaseModel):
    ok: bool
    task_id: str
    status: str
    revision: int
    elapsed_time: float
    next: Next
    waited_ms: int
    returned_because: str


TASK = Status(
    ok=True,
    task_id="task_01",
    status="running",
    revision=4,
    elapsed_time=30.0,
    next=Next(since=4),
    waited_ms=0,
    returned_because="timeout",
)


@server.tool(annotations={"readOnlyHint": True})
def get_task_status(task_id: str, timeout: int = 0) -> Status:
    """Where a task stands."""
    return TASK


if sys.argv[1] == "stdio":
    server.run(transport="stdio", show_banner=False, log_level="ERROR")
else:
    server.run(
        transport="http",
        host="127.0.0.1",
        port=int(sys.argv[2]),
        path="/mcp",
        stateless_http=True,
        show_banner=False,
        log_level="ERROR",
    )
