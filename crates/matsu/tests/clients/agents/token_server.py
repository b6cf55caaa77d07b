"""Plays the vendors' own servers for programs that cannot be told of others: an HTTPS proxy on loopback that answers
for every host itself, with certificates of its own.

    token_server.py FOLDER ACCESS_TOKEN MODEL_URL

Prints its port when it is ready. FOLDER gets `ca.pem`, and `requests.log` with one JSON line for each request: host,
first line, Authorization. Requests for a token are answered with new ones.
"""

import json
import os
import socket
import ssl
import subprocess
import sys
import threading
import urllib.request

HOSTS = [
    "platform.claude.com",
    "api.anthropic.com",
    "oauth2.googleapis.com",
    "www.googleapis.com",
    "cloudcode-pa.googleapis.com",
    "auth.openai.com",
    "chatgpt.com",
]


def openssl(folder, *words):
    subprocess.run(["openssl", *words], cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def certificates(folder):
    with open(os.path.join(folder, "names"), "w") as file:
        file.write("subjectAltName=" + ",".join(f"DNS:{host}" for host in HOSTS) + "\n")
    new = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    root = ["-subj", "/CN=test", "-days", "2", "-addext", "basicConstraints=critical,CA:TRUE"]
    openssl(folder, "req", "-x509", *new, "-keyout", "ca.key", "-out", "ca.pem", *root)
    openssl(folder, "req", *new, "-keyout", "key.pem", "-out", "leaf.csr", "-subj", "/CN=leaf")
    signed = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "names"]
    openssl(folder, "x509", "-req", "-in", "leaf.csr", *signed, "-out", "leaf.pem")
    os.chmod(os.path.join(folder, "ca.pem"), 0o644)


def request(stream):
    head = b""
    while b"\r\n\r\n" not in head:
        part = stream.recv(65536)
        if not part:
            return None
        head += part
    head, body = head.split(b"\r\n\r\n", 1)
    lines = head.decode().split("\r\n")
    headers = {name.lower(): value.strip() for name, value in (line.split(":", 1) for line in lines[1:])}
    length = int(headers.get("content-length", 0))
    is_chunked = "chunked" in headers.get("transfer-encoding", "")
    while not body.endswith(b"0\r\n\r\n") if is_chunked else len(body) < length:
        body += stream.recv(65536)
    return lines[0], headers, body


def answer(path, body, access, model):
    """The type and the text of an answer."""
    if path.endswith("/token"):
        tokens = {"access_token": access, "refresh_token": "renewed", "id_token": access, "token_type": "Bearer"}
        return "application/json", json.dumps({**tokens, "expires_in": 3600, "scope": "user:inference user:profile"})
    if path.endswith("/tokeninfo"):
        return "application/json", json.dumps({"aud": "x", "scope": "openid", "expires_in": 3600})
    if path.endswith(":loadCodeAssist"):
        tier = {"id": "free-tier", "name": "free"}
        return "application/json", json.dumps({"currentTier": tier, "cloudaicompanionProject": "p"})
    if ":streamGenerateContent" in path:
        said = {"content": {"role": "model", "parts": [{"text": "logged in"}]}, "finishReason": "STOP", "index": 0}
        usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
        part = {"response": {"candidates": [said], "usageMetadata": usage}}
        return "text/event-stream", f"data: {json.dumps(part)}\n\n"
    if path.endswith("/responses"):
        asked = urllib.request.Request(f"{model}/v1/responses", body, {"Content-Type": "application/json"})
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(asked) as reply:
            return "text/event-stream", reply.read().decode()
    return "application/json", "{}"


def serve(stream, context, log, access, model):
    try:
        asked = request(stream)
        if not asked or not asked[0].startswith("CONNECT "):
            return
        host = asked[0].split(" ")[1].split(":")[0]
        stream.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        stream = context.wrap_socket(stream, server_side=True)
        while asked := request(stream):
            line, headers, body = asked
            log.write(json.dumps([host, line, headers.get("authorization", "")]) + "\n")
            log.flush()
            kind, text = answer(line.split(" ")[1], body, access, model)
            head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(text.encode())}\r\n\r\n"
            stream.sendall((head + text).encode())
    except OSError:
        pass
    finally:
        stream.close()


def main():
    folder, access, model = sys.argv[1:4]
    certificates(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(os.path.join(folder, "leaf.pem"), os.path.join(folder, "key.pem"))
    log = open(os.path.join(folder, "requests.log"), "a")
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    while True:
        stream, _ = listener.accept()
        threading.Thread(target=serve, args=(stream, context, log, access, model), daemon=True).start()


main()
