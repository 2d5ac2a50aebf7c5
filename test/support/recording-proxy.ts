import { type Socket, connect, createServer } from "node:net";
import type { AddressInfo } from "node:net";

/** A proxy that notes where requests go, as `host:port`, and passes them to the given servers. It refuses all others. */
export interface RecordingProxy extends AsyncDisposable {
  readonly url: string;
  readonly asked: string[];
}

/** `refusal` is the status line's end with which it refuses: `502 Bad Gateway`. */
export async function recordingProxy(
  servers: Readonly<Record<string, number>> = {},
  refusal = "502 Bad Gateway",
): Promise<RecordingProxy> {
  const asked: string[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => socket.destroy()).on("close", () => sockets.delete(socket));
    socket.once("data", (head) => {
      const [, target = ""] = /^CONNECT (\S+) /.exec(head.toString()) ?? [];
      asked.push(target === "" ? (head.toString().split("\r\n")[0] ?? "") : target);
      const port = servers[target];
      if (port === undefined)
        return void socket.end(`HTTP/1.1 ${refusal}\r\nContent-Length: 0\r\n\r\n`);
      const other = connect(port, "127.0.0.1", () => socket.write("HTTP/1.1 200 OK\r\n\r\n"));
      sockets.add(other);
      other.on("error", () => socket.destroy());
      socket.pipe(other).pipe(socket);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
