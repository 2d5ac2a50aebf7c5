# Serves genconf/serve/ to the nodes of the cluster. Runs on the first master as a systemd unit, as root until its
# first request, on the Python that the node's cloud-init uses: 2.7 (CentOS 7) and later. Its argument is the path of
# its settings, a JSON file that only root can read. It prints one line on stderr for each node that is done.
#
#     GET  /SECRET/FILE       returns a file that existed when the server started; nothing else can be reached
#     POST /SECRET/installed  reports that the calling node needs no more files
#
# The server answers only the cluster's own addresses. It ends, with status 0 and the line "finished" in its state
# file, when all expected nodes have reported that they are done, or at its deadline. Both are kept in files, so they survive a
# reboot.
#
# It drops root's rights before it reads its first request: from then on it sees only the folder, and can only read
# there. Its user and group id belong to nobody: systemd doesn't reserve 60706 to 61183, and no distribution assigns
# them.

import errno
import hashlib
import hmac
import json
import os
import socket
import stat
import sys
import threading
import time

try:
    from urllib.parse import unquote_to_bytes as unquote
except ImportError:
    from urllib import unquote

IDENTITY = 60999
MOST_CONNECTIONS = 1024
MOST_PER_ADDRESS = 32
REQUEST_SECONDS = 10
STALL_SECONDS = 60
LAST_SECONDS = 5
MOST_REQUEST_BYTES = 8192
CHUNK_BYTES = 256 * 1024


def uptime():
    """Seconds since a fixed time. The node's clock may be set at any time."""
    return os.times()[4]


def files_below(root):
    found = {}
    for parent, _, names in os.walk(root):
        for name in names:
            path = os.path.join(parent, name)
            real = os.path.realpath(path)
            if os.path.isfile(real) and real.startswith(root + b"/"):
                found[path[len(root) + 1 :]] = real[len(root) + 1 :]
    return found


def share(path, more):
    os.chown(path, -1, IDENTITY)
    os.chmod(path, stat.S_IMODE(os.stat(path).st_mode) | more)


def drop_rights(root, files):
    """Files remain root's: the server can read them through its group, but cannot change any."""
    if os.geteuid() == 0:
        for parent, _, _ in os.walk(root):
            share(parent, 0o050)
        for path in files.values():
            share(os.path.join(root, path), 0o040)
        os.chdir(root)
        try:
            os.chroot(".")
        except OSError:
            # In some containers, root may not do that. The folders above are closed to other users in any case.
            pass
        os.setgroups([])
        os.setgid(IDENTITY)
        os.setuid(IDENTITY)
    else:
        os.chdir(root)


class State(object):
    """Which nodes are done: one line each in the state file, which is opened before the privileges are dropped."""

    def __init__(self, path, nodes):
        self.waiting = set(nodes)
        self.lock = threading.Lock()
        self.descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        lines = os.read(self.descriptor, 1024 * 1024).decode("ascii").splitlines()
        self.waiting.difference_update(lines)

    def add(self, line):
        os.write(self.descriptor, (line + "\n").encode("ascii"))
        os.fsync(self.descriptor)

    def node_is_done(self, address):
        with self.lock:
            if address not in self.waiting:
                return
            self.add(address)
            self.waiting.discard(address)
            left = len(self.waiting)
        sys.stderr.write("%s is done; %d to go\n" % (address, left))
        sys.stderr.flush()


class Server(object):
    def __init__(self, settings):
        self.nodes = frozenset(settings["nodes"])
        self.end = uptime() + settings["deadline"] - time.time()
        self.root = os.path.realpath(settings["folder"].encode("utf-8"))
        # An upgrade that continues has fewer nodes to serve, but the first master asks whether the server answers.
        self.state = State(settings["state"], settings.get("expected", self.nodes))
        self.key = os.urandom(32)
        self.secret = self.digest(settings["secret"].encode("ascii"))
        self.counts = {}
        self.lock = threading.Lock()

    def digest(self, text):
        return hmac.new(self.key, text, hashlib.sha256).digest()

    def is_over(self):
        return not self.state.waiting or uptime() >= self.end

    def run(self, address, port):
        if not self.is_over():
            listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bind(listener, address, port)
            self.files = files_below(self.root)
            drop_rights(self.root, self.files)
            listener.listen(1024)
            listener.settimeout(1)
            while not self.is_over():
                self.accept(listener)
            listener.close()
            self.drain()
        self.state.add("finished")

    def accept(self, listener):
        try:
            connection, (address, _) = listener.accept()
        except socket.timeout:
            return
        except (OSError, socket.error):
            time.sleep(0.1)
            return
        if address not in self.nodes or not self.enter(address):
            connection.close()
            return
        thread = threading.Thread(target=self.serve, args=(connection, address))
        thread.daemon = True
        try:
            thread.start()
        except Exception:
            self.leave(address)
            connection.close()

    def enter(self, address):
        with self.lock:
            count = self.counts.get(address, 0)
            if count >= MOST_PER_ADDRESS or sum(self.counts.values()) >= MOST_CONNECTIONS:
                return False
            self.counts[address] = count + 1
            return True

    def leave(self, address):
        with self.lock:
            self.counts[address] -= 1

    def drain(self):
        end = uptime() + LAST_SECONDS
        while uptime() < end and sum(self.counts.values()) > 0:
            time.sleep(0.1)

    def serve(self, connection, address):
        try:
            self.answer(connection, address, read_head(connection))
            connection.shutdown(socket.SHUT_RDWR)
        except Exception:
            pass
        finally:
            connection.close()
            self.leave(address)

    def answer(self, connection, address, head):
        words = head.split(b"\r\n", 1)[0].split(b" ")
        if len(words) != 3:
            return
        method, path = words[0], words[1].split(b"?", 1)[0]
        given, _, name = path[1:].partition(b"/")
        if not path.startswith(b"/") or self.digest(given) != self.secret:
            reply(connection, b"404 Not Found", 0)
        elif method == b"POST" and name == b"installed":
            self.state.node_is_done(address)
            reply(connection, b"204 No Content", 0)
        elif method in (b"GET", b"HEAD") and unquote(name) in self.files:
            self.send(connection, self.files[unquote(name)], method == b"GET")
        else:
            reply(connection, b"404 Not Found", 0)

    def send(self, connection, path, with_body):
        with open(path, "rb") as source:
            size = os.fstat(source.fileno()).st_size
            connection.settimeout(STALL_SECONDS)
            reply(connection, b"200 OK", size)
            while with_body and size > 0:
                chunk = source.read(min(CHUNK_BYTES, size))
                if not chunk:
                    break
                connection.sendall(chunk)
                size -= len(chunk)


def bind(listener, address, port):
    try:
        listener.bind((address, port))
    except (OSError, socket.error) as error:
        if error.errno != errno.EADDRINUSE:
            raise
        sys.exit("port %d of %s is taken by another program" % (port, address))


def read_head(connection):
    end = uptime() + REQUEST_SECONDS
    head = b""
    while b"\r\n\r\n" not in head and len(head) < MOST_REQUEST_BYTES:
        connection.settimeout(max(0.01, end - uptime()))
        more = connection.recv(MOST_REQUEST_BYTES - len(head))
        if not more or uptime() >= end:
            return b""
        head += more
    return head if b"\r\n\r\n" in head else b""


def reply(connection, status, length):
    head = b"HTTP/1.1 " + status + b"\r\nConnection: close\r\nContent-Length: " + str(length).encode("ascii")
    connection.sendall(head + b"\r\nContent-Type: application/octet-stream\r\n\r\n")


def main():
    os.umask(0o077)
    with open(sys.argv[1]) as source:
        settings = json.load(source)
    Server(settings).run(str(settings["address"]), settings["port"])


main()
