import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";

export interface Gate extends AsyncDisposable {
  readonly port: number;
  /** Resolves with the first connection. */
  readonly met: Promise<void>;
  connections(): number;
}

/** A port in front of an SSH server. It turns some connections away as sshd does from OpenSSH 9.8 on, and passes all others on. */
export async function startGate(
  port: number,
  turnsAway: (connection: number) => boolean,
  refusal = "Not allowed at this time\r\n",
): Promise<Gate> {
  const state = { connections: 0 };
  const met = Promise.withResolvers<void>();
  const server = createServer((socket) => {
    socket.on("error", () => {});
    state.connections += 1;
    met.resolve();
    if (turnsAway(state.connections)) {
      socket.end(refusal);
      socket.resume();
      return;
    }
    const onward = connect(port, "127.0.0.1").on("error", () => {});
    socket.pipe(onward).pipe(socket);
    socket.once("close", () => onward.destroy());
    onward.once("close", () => socket.destroy());
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    met: met.promise,
    connections: () => state.connections,
    [Symbol.asyncDispose]: async () => void server.close(),
  };
}
