/** What nodes reach on this computer. */
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { networkInterfaces } from "node:os";

export interface Listener extends AsyncDisposable {
  /** A script that sends this text, with TCP and UDP, to each of these addresses and all of this computer. It never fails. */
  sending(text: string, addresses: readonly string[]): string;
  /** The texts that have arrived until now. The addresses must be this computer's. */
  heard(addresses: readonly string[]): Promise<readonly string[]>;
}

/** Listens at all addresses of this computer. */
export async function listenEverywhere(): Promise<Listener> {
  const texts: string[] = [];
  const server = createServer((socket) => {
    socket.on("data", (data) => void texts.push(data.toString().trim())).on("error", () => {});
  }).listen(0, "0.0.0.0");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const datagrams = createSocket("udp4").on(
    "message",
    (data) => void texts.push(data.toString().trim()),
  );
  await new Promise<void>((resolve) => void datagrams.bind(port, "0.0.0.0", resolve));
  return {
    sending: (text, addresses) => {
      const own = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
      const all = [
        ...addresses,
        ...own.filter(({ family }) => family === "IPv4").map(({ address }) => address),
      ];
      const send = `timeout 5 bash -c "echo ${text} >/dev/tcp/$0/${port}"; echo ${text} >/dev/udp/$0/${port}`;
      return [...new Set(all)]
        .filter((address) => !address.startsWith("127."))
        .map((address) => `(${send.replaceAll("$0", address)}) 2>/dev/null`)
        .concat("true")
        .join("\n");
    },
    heard: async (addresses) => {
      const marker = crypto.randomUUID();
      for (const host of addresses) {
        connect({ host, port }).end(marker);
        datagrams.send(marker, port, host);
      }
      while (texts.filter((text) => text === marker).length < 2 * addresses.length)
        await Bun.sleep(20);
      return texts.splice(0).filter((text) => text !== marker);
    },
    [Symbol.asyncDispose]: async () => {
      datagrams.close();
      server.close();
      await once(server, "close");
    },
  };
}
