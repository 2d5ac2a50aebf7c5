import { type AddressInfo, type Socket, createServer } from "node:net";
import { ClusterError, messageOf, systemReason } from "../errors.ts";
import { withinLimit } from "../system/time-limit.ts";
import type { Connection, PortStream } from "./connection/connection.ts";

export interface Forward {
  /** The node's own address, and the port there. */
  readonly host: string;
  readonly port: number;
  /** The port of 127.0.0.1; 0: any that is free. */
  readonly localPort: number;
  readonly connect: (signal: AbortSignal) => Promise<Connection>;
  /** Milliseconds for each address of the node; absent: ten seconds. */
  readonly limitMs?: number;
  /** Why one of the connections was not opened. */
  readonly onFailure: (reason: string) => void;
}

/**
 * Listens on 127.0.0.1 only, and leads each connection through SSH to a port of the node, whose own
 * address is tried first, then its 127.0.0.1. Throws `bad-usage` if the local port can't be opened.
 */
export async function forwardPort(forward: Forward, signal: AbortSignal) {
  const open = new Set<Socket>();
  // What has sent everything may still want the answer.
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    open.add(socket);
    socket.on("error", () => socket.destroy()).once("close", () => open.delete(socket));
    lead(forward, signal).then(
      (channel) => join(socket, channel),
      (error: unknown) => {
        socket.destroy();
        if (!signal.aborted) forward.onFailure(messageOf(error));
      },
    );
  });
  const listening = Promise.withResolvers<void>();
  server.once("error", listening.reject).listen(forward.localPort, "127.0.0.1", listening.resolve);
  await listening.promise.catch((error: unknown) => {
    throw new ClusterError(
      "bad-usage",
      `Cannot listen on port ${forward.localPort} of 127.0.0.1: ${systemReason(error)}.`,
      { hint: "Choose another local port, or none.", cause: error },
    );
  });
  return {
    localPort: (server.address() as AddressInfo).port,
    [Symbol.asyncDispose]: async () => {
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** A port that answers at all does so within a round trip. One that drops packets keeps sshd waiting for minutes. */
const usualLimitMs = 10_000;

async function lead(
  { host, port, connect, limitMs = usualLimitMs }: Omit<Forward, "localPort" | "onFailure">,
  signal: AbortSignal,
): Promise<PortStream> {
  const connection = await connect(signal);
  const open = async (address: string): Promise<PortStream> =>
    withinLimit(
      limitMs,
      async (inner) => connection.openPort({ host: address, port }, inner),
      () => {
        throw new Error(`Port ${port} of ${address} did not answer within ${limitMs / 1000} s`);
      },
      signal,
    );
  return await open(host).catch(async () => open("127.0.0.1"));
}

function join(socket: Socket, channel: PortStream): void {
  const end = (): void => {
    socket.destroy();
    channel.destroy();
  };
  channel.on("error", end).once("close", end);
  socket.once("error", end).once("close", end);
  if (socket.destroyed) end();
  else socket.pipe(channel).pipe(socket);
}
