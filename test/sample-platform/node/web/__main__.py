"""The web interface of a master: `python3 web SOCKET`. nginx is its proxy and handles HTTPS.

    GET  /                       the page
    GET  /health                 200 while this service works
    GET  /nodes                  JSON list of the agents that are registered
    GET  /overview               JSON: masters, agents, queue (what the page shows)
    POST /acs/api/v1/auth/login  enterprise: {"uid", "password"} -> {"token"}

On enterprise `/nodes` and `/overview` require `Authorization: token=TOKEN`.
"""

import json
import socketserver
import sys
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import cluster
import login
from cluster_internal_utils import slurm

LARGEST_BODY_BYTES = 64 * 1024
PAGE = Path(__file__).with_name("page.html")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60

    def do_GET(self) -> None:
        path = self.path.split("?", 1)[0]
        if path == "/":
            self.answer(200, PAGE.read_bytes(), "text/html; charset=utf-8")
        elif path == "/health":
            self.answer(200, b"ok\n", "text/plain")
        elif path not in ("/nodes", "/overview"):
            self.answer_json(404, {"title": "Not found"})
        elif not login.permits(self.headers.get("Authorization", "")):
            self.answer_json(401, {"title": "Unauthorized", "description": "Log in first."})
        elif path == "/nodes":
            self.answer_nodes()
        else:
            self.answer_json(200, cluster.overview())

    do_HEAD = do_GET

    def do_POST(self) -> None:
        body = self.body()
        if self.path != "/acs/api/v1/auth/login" or not login.is_required():
            self.answer_json(404, {"title": "Not found"})
            return
        credentials = parsed(body)
        if credentials is None:
            self.answer_json(400, {"title": "Bad request", "description": "Send a JSON object with uid and password."})
            return
        token = login.token_for(credentials["uid"], credentials["password"])
        if token is None:
            self.answer_json(401, {"title": "Unauthorized", "description": "Unknown user or wrong password."})
        else:
            self.answer_json(200, {"token": token})

    def answer_nodes(self) -> None:
        try:
            self.answer_json(200, cluster.registered())
        except slurm.Unavailable as error:
            self.answer_json(503, {"title": "Unavailable", "description": str(error)})

    def body(self) -> bytes:
        length = self.headers.get("Content-Length", "0")
        if not length.isdecimal() or int(length) > LARGEST_BODY_BYTES:
            self.close_connection = True
            return b""
        return self.rfile.read(int(length))

    def answer_json(self, status: int, value: object) -> None:
        self.answer(status, json.dumps(value).encode() + b"\n", "application/json")

    def answer(self, status: int, content: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Content-Security-Policy", "default-src 'self' 'unsafe-inline'; frame-ancestors 'none'")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def address_string(self) -> str:
        return "nginx"

    def log_request(self, code: object = "-", size: object = "-") -> None:
        """Does nothing, because nginx logs the requests."""


def parsed(body: bytes) -> dict[str, str] | None:
    try:
        value = json.loads(body)
    except ValueError:
        return None
    complete = isinstance(value, dict) and all(isinstance(value.get(key), str) for key in ("uid", "password"))
    return value if complete else None


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    request_queue_size = 128


def serve(path: Path) -> None:
    path.unlink(missing_ok=True)
    with Server(str(path), Handler) as server:
        path.chmod(0o660)
        server.serve_forever()


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
