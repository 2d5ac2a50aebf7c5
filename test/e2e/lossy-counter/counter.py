"""Keeps numbers, and answers one line on each connection: "ok" to "add 7", and all numbers to "list".

The planted bug: it saves them only when it is asked to end.
"""

import os
import signal
import socketserver
import sys

PATH = "/var/lib/counter/numbers"
numbers = set()


class Answer(socketserver.StreamRequestHandler):
    def handle(self):
        words = self.rfile.readline().decode().split()
        if words[:1] == ["add"]:
            numbers.add(int(words[1]))
        answer = "ok" if words[:1] == ["add"] else " ".join(map(str, sorted(numbers)))
        self.wfile.write((answer + "\n").encode())


def save(*_):
    with open(PATH, "w") as file:
        file.write(" ".join(map(str, numbers)))
    sys.exit(0)


if os.path.exists(PATH):
    with open(PATH) as file:
        numbers.update(map(int, file.read().split()))
signal.signal(signal.SIGTERM, save)
socketserver.TCPServer.allow_reuse_address = True
socketserver.TCPServer(("", 7000), Answer).serve_forever()
