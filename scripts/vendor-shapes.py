#!/usr/bin/env python3
"""What the vendors' own SDKs send, written down.

One conversation (a system prompt, two parallel calls, a result, an error, structured output, a bound on the answer) is
said with each official SDK to a server on loopback, and the body of the request is stored below
crates/matsu-adapters/src/providers/formats/tests/vendor. The tests compare Matsu's own requests with these.

    scripts/clients.sh vendors          makes sure of the SDKs and prints the Python that has them
    PYTHON scripts/vendor-shapes.py     writes the recordings anew
"""

import contextlib
import json
import pathlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import anthropic
import ollama
import openai
from google import genai
from google.genai import types

HERE = pathlib.Path(__file__).resolve().parent.parent
FOLDER = HERE / "crates/matsu-adapters/src/providers/formats/tests/vendor"

SYSTEM = "Be brief."
QUESTION = "look twice"
GO_ON = "go on"
TOOL = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
    "additionalProperties": False,
}
ANSWER = {
    "type": "object",
    "properties": {"a": {"type": "string"}},
    "required": ["a"],
    "additionalProperties": False,
}


class Recorder(BaseHTTPRequestHandler):
    """Writes down what was asked and refuses it, so that no SDK tries again."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.asked.append({"path": self.path, "body": json.loads(body)})
        self.send_response(400)
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(b'{"error":{"message":"recorded","type":"invalid_request_error"}}')

    def log_message(self, *words):
        pass


@contextlib.contextmanager
def recording(name):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Recorder)
    server.asked = []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    except Exception as error:
        if not server.asked:
            raise
        assert "recorded" in str(error), error
    finally:
        server.shutdown()
    [asked] = server.asked
    text = json.dumps(asked, indent=2, sort_keys=True, ensure_ascii=False)
    (FOLDER / f"{name}.json").write_text(text + "\n")


def call(n):
    return {"id": f"call_{n}", "type": "function", "function": {"name": "look", "arguments": json.dumps({"n": n}, separators=(",", ":"))}}


with recording("openai_chat") as url:
    openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0).chat.completions.create(
        model="gpt-4o",
        messages=[
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": QUESTION},
            {"role": "assistant", "content": "Looking.", "tool_calls": [call(1), call(2)]},
            {"role": "tool", "tool_call_id": "call_1", "content": '{"a":1}'},
            {"role": "tool", "tool_call_id": "call_2", "content": "Error: no such place"},
            {"role": "user", "content": GO_ON},
        ],
        tools=[{"type": "function", "function": {"name": "look", "description": "Looks.", "parameters": TOOL}}],
        response_format={
            "type": "json_schema",
            "json_schema": {"name": "answer", "schema": ANSWER, "strict": True},
        },
        max_completion_tokens=500,
        stream=True,
        stream_options={"include_usage": True},
    )

with recording("openai") as url:
    openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0).responses.create(
        model="gpt-4o",
        instructions=SYSTEM,
        input=[
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": QUESTION}]},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Looking."}]},
            {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": '{"n":1}'},
            {"type": "function_call", "call_id": "call_2", "name": "look", "arguments": '{"n":2}'},
            {"type": "function_call_output", "call_id": "call_1", "output": '{"a":1}'},
            {"type": "function_call_output", "call_id": "call_2", "output": "Error: no such place"},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": GO_ON}]},
        ],
        tools=[{"type": "function", "name": "look", "description": "Looks.", "parameters": TOOL, "strict": False}],
        text={"format": {"type": "json_schema", "name": "answer", "schema": ANSWER, "strict": True}},
        max_output_tokens=500,
        store=False,
        stream=True,
    )

with recording("anthropic") as url:
    anthropic.Anthropic(base_url=url, api_key="k", max_retries=0).messages.create(
        model="claude-x",
        system=SYSTEM,
        messages=[
            {"role": "user", "content": [{"type": "text", "text": QUESTION}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "Looking."},
                    {"type": "tool_use", "id": "call_1", "name": "look", "input": {"n": 1}},
                    {"type": "tool_use", "id": "call_2", "name": "look", "input": {"n": 2}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "call_1", "content": '{"a":1}'},
                    {"type": "tool_result", "tool_use_id": "call_2", "content": "no such place", "is_error": True},
                    {"type": "text", "text": GO_ON},
                ],
            },
        ],
        tools=[{"name": "look", "description": "Looks.", "input_schema": TOOL}],
        output_config={"format": {"type": "json_schema", "schema": ANSWER}},
        max_tokens=500,
        stream=True,
    )

with recording("gemini") as url:
    client = genai.Client(api_key="k", http_options=types.HttpOptions(base_url=url))
    look = lambda n: types.Part(function_call=types.FunctionCall(id=f"call_{n}", name="look", args={"n": n}))
    seen = lambda n, said: types.Part(
        function_response=types.FunctionResponse(id=f"call_{n}", name="look", response=said)
    )
    for _ in client.models.generate_content_stream(
        model="gemini-2.5-pro",
        contents=[
            types.Content(role="user", parts=[types.Part(text=QUESTION)]),
            types.Content(role="model", parts=[types.Part(text="Looking."), look(1), look(2)]),
            types.Content(
                role="user",
                parts=[seen(1, {"a": 1}), seen(2, {"error": "no such place"}), types.Part(text=GO_ON)],
            ),
        ],
        config=types.GenerateContentConfig(
            system_instruction=types.Content(parts=[types.Part(text=SYSTEM)]),
            tools=[
                types.Tool(
                    function_declarations=[
                        types.FunctionDeclaration(name="look", description="Looks.", parameters_json_schema=TOOL)
                    ]
                )
            ],
            response_mime_type="application/json",
            response_json_schema=ANSWER,
            max_output_tokens=500,
        ),
    ):
        pass

with recording("ollama") as url:
    look = lambda n: {"function": {"name": "look", "arguments": {"n": n}}}
    for _ in ollama.Client(host=url).chat(
        model="qwen3",
        messages=[
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": QUESTION},
            {"role": "assistant", "content": "Looking.", "tool_calls": [look(1), look(2)]},
            {"role": "tool", "tool_name": "look", "content": '{"a":1}'},
            {"role": "tool", "tool_name": "look", "content": "Error: no such place"},
            {"role": "user", "content": GO_ON},
        ],
        tools=[{"type": "function", "function": {"name": "look", "description": "Looks.", "parameters": TOOL}}],
        format=ANSWER,
        options={"num_predict": 500},
        stream=True,
    ):
        pass
