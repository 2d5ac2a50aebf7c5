"""A master's web server, and the port where agents register: `python3 master.py master`.

    GET  /                       200
    GET  /ca/dcos-ca.crt         enterprise: the certificate of the authority
    POST /acs/api/v1/auth/login  enterprise: {"uid", "password"} -> {"token"}, 401 for others
    GET  /mesos/master/slaves    {"slaves": [...]} with a token, otherwise 401; open source: without a token
    POST :5050/register          {"hostname", "role"}, by agents
"""

import ctypes
import json
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import machine

# Since 3.13 Python has no module for crypt(3). PyDLL lets only one thread call it at a time.
CRYPT = ctypes.PyDLL("libcrypt.so.1").crypt
CRYPT.restype = ctypes.c_char_p

ROOT = Path("/opt/mesosphere")
TLS = Path("/var/lib/dcos/pki/tls")
SETTINGS = json.loads((ROOT / "etc" / "settings.json").read_text(encoding="utf-8"))
AGENTS: dict[str, dict] = {}
# A platform that has just started rejects its superuser for a while.
STARTED = time.monotonic()
REFUSES_SECONDS = 5


class Handler(BaseHTTPRequestHandler):
    timeout = 30

    def do_GET(self) -> None:
        if self.path == "/":
            self.answer(200, b"<title>Stand-in</title>")
        elif self.path == "/ca/dcos-ca.crt" and SETTINGS["ssl_enabled"]:
            self.answer(200, (ROOT / "etc" / "ca.crt").read_bytes())
        elif self.path != "/mesos/master/slaves":
            self.answer(404, b"")
        elif SETTINGS["variant"] == "open" or self.headers.get("Authorization") != f"token={SETTINGS['token']}":
            self.answer(401, b"")
        else:
            self.answer(200, json.dumps({"slaves": list(AGENTS.values())}).encode())

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/register" and self.server.server_address[1] == 5050:
            AGENTS[body["hostname"]] = body
            self.answer(200, b"")
        elif self.path == "/acs/api/v1/auth/login" and SETTINGS["variant"] == "enterprise":
            self.log_in(body)
        else:
            self.answer(404, b"")

    def log_in(self, body: dict) -> None:
        login = SETTINGS["login"]
        wanted = login["superuser_password_hash"].encode()
        hashed = CRYPT(body["password"].encode(), wanted)
        if time.monotonic() - STARTED < REFUSES_SECONDS:
            self.answer(401, b"")
        elif body["uid"] == login["superuser_username"] and hashed == wanted:
            self.answer(200, json.dumps({"token": SETTINGS["token"]}).encode())
        else:
            self.answer(401, b"")

    def answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments) -> None:
        pass


def main() -> None:
    machine.check("master")
    servers = [ThreadingHTTPServer(("", port), Handler) for port in (80, 5050)]
    if SETTINGS["ssl_enabled"]:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(TLS / "server.crt", TLS / "server.key")
        secure = ThreadingHTTPServer(("", 443), Handler)
        secure.socket = context.wrap_socket(secure.socket, server_side=True, do_handshake_on_connect=False)
        servers.append(secure)
    for server in servers:
        threading.Thread(target=server.serve_forever).start()


main()
