"""A scripted model on loopback that speaks as Anthropic's does, so that the real Claude Code can work with it.

Every request is kept with its time before it is answered: what a model was shown, and when, is what is measured."""

import dataclasses
import http.server
import itertools
import json
import threading
import time


@dataclasses.dataclass
class Asked:
    at: float
    system: str
    messages: list
    # Those of the messages that a user or a tool wrote, not the model.
    by_user: list
    tools: list
    # What has come since the model spoke last, and the tool results in it.
    news: str
    results: list

    @property
    def said(self):
        return "\n".join(self.by_user)


@dataclasses.dataclass
class Call:
    """An answer that calls a tool; a plain text ends the turn."""

    tool: str
    arguments: dict


def text_of(content):
    """Everything in a message that a model reads or has called."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(text_of(part) for part in content)
    if isinstance(content, dict):
        if content.get("type") == "tool_use":
            return json.dumps(content.get("input"))
        return text_of(content.get("text") or content.get("content") or "")
    return ""


class Model:
    def __init__(self, author):
        """The author is asked for each answer: a text or a `Call`."""
        self.author = author
        self.ids = itertools.count(1)
        model = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
                if self.path.split("?")[0].endswith("/v1/messages"):
                    self.stream(model.answer(body), body)
                elif "count_tokens" in self.path:
                    self.reply(200, {"input_tokens": 10})
                else:
                    self.reply(404, {})

            def do_GET(self):
                self.reply(404, {})

            def do_HEAD(self):
                self.reply(200, {})

            def reply(self, status, value):
                data = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(data)

            def stream(self, message, body):
                if not body.get("stream"):
                    return self.reply(200, message)
                data = "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events(message)).encode()
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, body):
        messages = body.get("messages", [])
        spoken = [n for n, message in enumerate(messages) if message["role"] == "assistant"]
        new = messages[spoken[-1] + 1 if spoken else 0 :]
        parts = [part for message in new if isinstance(message["content"], list) for part in message["content"]]
        asked = Asked(
            time.time(),
            text_of(body.get("system", "")),
            [text_of(message["content"]) for message in messages],
            [text_of(message["content"]) for message in messages if message["role"] != "assistant"],
            [tool.get("name", "") for tool in body.get("tools", [])],
            "\n".join(text_of(message["content"]) for message in new),
            [text_of(part) for part in parts if part.get("type") == "tool_result"],
        )
        said = self.author(asked)
        number = next(self.ids)
        if isinstance(said, Call):
            block = {"type": "tool_use", "id": f"toolu_{number:08}", "name": said.tool, "input": said.arguments}
        else:
            block = {"type": "text", "text": said}
        return {
            "id": f"msg_{number:08}",
            "type": "message",
            "role": "assistant",
            "model": body.get("model", ""),
            "content": [block],
            "stop_reason": "tool_use" if isinstance(said, Call) else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 10, "output_tokens": 5},
        }

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        """A client that is killed leaves a broken connection behind: that is no error here."""


def events(message):
    block = message["content"][0]
    yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    if block["type"] == "text":
        begun, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": block["text"]}
    else:
        begun = {**block, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    yield {"type": "content_block_start", "index": 0, "content_block": begun}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    ended = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": ended, "usage": {"output_tokens": 5}}
    yield {"type": "message_stop"}
