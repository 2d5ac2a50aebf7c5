import { readFileSync } from "node:fs";
import { type AddressInfo, type Socket, createConnection, createServer } from "node:net";

export interface Relay extends AsyncDisposable {
  /** Of 127.0.0.1. */
  readonly port: number;
}

/**
 * Leads a port of 127.0.0.1 to a socket. A port has no mode as the socket's file has, so other accounts of this computer, which could become root through that of a
 * Docker, get no connection.
 */
export async function relayTo(path: string): Promise<Relay> {
  const relay = createServer({ allowHalfOpen: true }, (client) => {
    client.on("error", () => {});
    if (userOf(client) !== process.getuid?.()) return void client.destroy();
    const service = createConnection({ path, allowHalfOpen: true });
    client.on("error", () => service.destroy());
    service.on("error", () => client.destroy());
    client.pipe(service).pipe(client);
  });
  await new Promise<void>((resolve) => relay.listen(0, "127.0.0.1", resolve));
  return {
    port: (relay.address() as AddressInfo).port,
    [Symbol.asyncDispose]: () => new Promise((resolve) => relay.close(() => resolve())),
  };
}

/** The user whose process has the other end of a connection over 127.0.0.1, as the kernel says; undefined if it doesn't. */
function userOf({ remotePort = 0, localPort = 0 }: Socket): number | undefined {
  const end = (port: number): string =>
    `0100007F:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const rows = readFileSync("/proc/net/tcp", "utf8").split("\n");
  const fields = rows
    .map((row) => row.trim().split(/\s+/))
    .find(([, own, other]) => own === end(remotePort) && other === end(localPort));
  return fields?.[7] === undefined ? undefined : Number(fields[7]);
}
