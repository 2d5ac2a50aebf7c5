/**
 * The server of `genconf/serve/`: for any Python from 2.7 on, because it is the one that the node's own cloud-init runs on. Python's ready
 * one (`-m http.server`) serves one node at a time before 3.7, can't be bound to an address in 2.7, and asks DNS for names.
 * Arguments: folder, address, port.
 */
export const bootstrapServer = `import os
import sys

try:
    from http.server import HTTPServer, SimpleHTTPRequestHandler
    from socketserver import TCPServer, ThreadingMixIn
except ImportError:
    from BaseHTTPServer import HTTPServer
    from SimpleHTTPServer import SimpleHTTPRequestHandler
    from SocketServer import TCPServer, ThreadingMixIn


class Server(ThreadingMixIn, HTTPServer):
    daemon_threads = True
    request_queue_size = 512

    def server_bind(self):
        # HTTPServer's own looks the address up in DNS, which may take minutes where there is none.
        TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]


class Handler(SimpleHTTPRequestHandler):
    timeout = 60

    def list_directory(self, path):
        self.send_error(404)

    def log_message(self, *arguments):
        pass


os.chdir(sys.argv[1])
Server((sys.argv[2], int(sys.argv[3])), Handler).serve_forever()
`;
