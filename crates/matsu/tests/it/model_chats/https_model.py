"""A model behind HTTPS, with a certificate of an authority of its own: https_model.py FOLDER

Prints its port when it is ready. FOLDER gets `ca.pem`. Every request is answered with one stream in OpenAI's format.
"""

import http.server
import ssl
import subprocess
import sys

folder = sys.argv[1]
ANSWER = b'data: {"choices":[{"index":0,"delta":{"content":"safely"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'


def openssl(*words):
    subprocess.run(["openssl", *words], cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


class Model(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(ANSWER)))
        self.end_headers()
        self.wfile.write(ANSWER)

    def log_message(self, *_):
        pass


new = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
root = ["-subj", "/CN=test", "-days", "2", "-addext", "basicConstraints=critical,CA:TRUE"]
openssl("req", "-x509", *new, "-keyout", "ca.key", "-out", "ca.pem", *root)
openssl("req", *new, "-keyout", "key.pem", "-out", "leaf.csr", "-subj", "/CN=localhost")
with open(f"{folder}/names", "w") as file:
    file.write("subjectAltName=DNS:localhost\n")
signed = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "names"]
openssl("x509", "-req", "-in", "leaf.csr", *signed, "-out", "leaf.pem")


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *_):
        """A client that refuses the certificate."""


server = Server(("127.0.0.1", 0), Model)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(f"{folder}/leaf.pem", f"{folder}/key.pem")
# The handshake is made by the thread of the request: a client that refuses the certificate must not end the server.
server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
print(server.server_address[1], flush=True)
server.serve_forever()
