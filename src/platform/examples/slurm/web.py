# Serves a page with the state of Slurm's nodes and jobs on port 80. slurm-web.service runs it on the master, as nobody,
# on Python 3; prints a line for each request.

import html
import subprocess
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

COMMANDS = (["sinfo", "--Node", "--long"], ["squeue", "--all"])
PAGE = "<!DOCTYPE html><title>Slurm</title><meta http-equiv=refresh content=10><h1>Slurm</h1><pre>{}</pre>\n"


def output(command):
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout
    except subprocess.SubprocessError as error:
        return str(error)


class Page(BaseHTTPRequestHandler):
    timeout = 20

    def do_GET(self):
        body = PAGE.format(html.escape("\n".join(map(output, COMMANDS)))).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


ThreadingHTTPServer(("", 80), Page).serve_forever()
