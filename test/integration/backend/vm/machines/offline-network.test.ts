/** What leaves QEMU's network for a machine, through a real QEMU that has no machine: the test is its network card. */
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { access } from "node:fs/promises";
import { type AddressInfo, type Socket, connect, createServer } from "node:net";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { machineWords } from "../../../../support/machine-words.ts";
import { scratchFolder } from "../../../../support/scratch-folder.ts";
import { until } from "../../../../support/until.ts";

const program = "qemu-system-x86_64";
const missing = Bun.which(program) === null ? `no ${program} here` : undefined;

/** The network that a machine of these options has to the outside, as QEMU's command line has it. */
function networkWord(isOffline: boolean): string {
  const words = machineWords({ isOffline, hasIpv6: false, ports: { ssh: 0, http: 0, https: 0 } });
  return words.find((word) => word.startsWith("user,id=outside"))!;
}

const [guest, host] = [
  [10, 0, 2, 15],
  [10, 0, 2, 2],
];
const [guestCard, hostCard] = [
  Buffer.from("525400930002", "hex"),
  Buffer.from("52550a000202", "hex"),
];
const frame = (type: number, ...parts: readonly Uint8Array[]): Buffer => {
  const whole = Buffer.concat([
    hostCard,
    guestCard,
    Buffer.from([type >> 8, type & 255]),
    ...parts,
  ]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(whole.length);
  return Buffer.concat([length, whole]);
};

/** The sum of Internet headers. */
function sumOf(data: Buffer): number {
  const words = Array.from({ length: data.length / 2 }, (_, place) => data.readUInt16BE(place * 2));
  const sum = words.reduce((total, word) => total + word, 0);
  const folded = (sum & 0xffff) + (sum >>> 16);
  return ~((folded & 0xffff) + (folded >>> 16)) & 0xffff;
}

function packet(protocol: number, contents: Buffer): Buffer {
  const head = Buffer.from([
    0x45,
    0,
    0,
    20 + contents.length,
    0,
    1,
    0,
    0,
    64,
    protocol,
    0,
    0,
    ...guest,
    ...host,
  ]);
  head.writeUInt16BE(sumOf(head), 10);
  return frame(0x0800, head, contents);
}

function datagram(port: number, text: string): Buffer {
  const head = Buffer.alloc(8);
  for (const [place, value] of [5000, port, 8 + text.length, 0].entries())
    head.writeUInt16BE(value, place * 2);
  return packet(17, Buffer.concat([head, Buffer.from(text)]));
}

function connection(port: number): Buffer {
  const head = Buffer.alloc(20);
  head.writeUInt16BE(5000, 0);
  head.writeUInt16BE(port, 2);
  head.writeUInt16BE(0x5002, 12);
  head.writeUInt16BE(1024, 14);
  head.writeUInt16BE(
    sumOf(Buffer.concat([Buffer.from([...guest, ...host, 0, 6, 0, 20]), head])),
    16,
  );
  return packet(6, head);
}

/** Asks who has the host's address. The answer comes after what was sent before. */
const question = frame(
  0x0806,
  Buffer.from([0, 1, 8, 0, 6, 4, 0, 1]),
  guestCard,
  Buffer.from([...guest, 0, 0, 0, 0, 0, 0, ...host]),
);

async function startNetwork(word: string) {
  const folder = await scratchFolder();
  const path = join(folder.path, "card");
  const card = ["-netdev", `stream,id=card,server=on,addr.type=unix,addr.path=${path}`];
  const ports = ["outside", "card"].flatMap((each) => [
    "-netdev",
    `hubport,id=to-${each},hubid=0,netdev=${each}`,
  ]);
  const words = [
    "-nodefaults",
    "-display",
    "none",
    "-machine",
    "none",
    "-netdev",
    word,
    ...card,
    ...ports,
  ];
  const child = Bun.spawn([program, ...words], { stdio: ["ignore", "ignore", "ignore"] });
  await until("QEMU listens", async () =>
    access(path).then(
      () => true,
      () => false,
    ),
  );
  const socket: Socket = connect(path);
  await once(socket, "connect");
  return {
    socket,
    [Symbol.asyncDispose]: async () => {
      socket.destroy();
      child.kill("SIGKILL");
      await child.exited;
      await folder[Symbol.asyncDispose]();
    },
  };
}

// Shows R138.
test.skipIf(missing !== undefined).each([
  [true, []],
  [false, ["connected", "sent"]],
] as const)(
  "a machine reaches what listens on this computer's loopback unless it is offline: offline %p",
  async (isOffline, expected) => {
    const heard: string[] = [];
    const server = createServer((socket) => {
      heard.push("connected");
      socket.on("error", () => {}).destroy();
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const datagrams = createSocket("udp4").on(
      "message",
      (text) => void heard.push(text.toString()),
    );
    await new Promise<void>((resolve) => void datagrams.bind(port, "127.0.0.1", resolve));
    await using network = await startNetwork(networkWord(isOffline));
    const answers: number[] = [];
    network.socket.on("data", (data) => void answers.push(data.length));
    network.socket.write(
      Buffer.concat([question, datagram(port, "sent"), connection(port), question]),
    );
    await until("QEMU has answered", () => answers.reduce((sum, each) => sum + each, 0) >= 2 * 46);
    if (expected.length > 0)
      await until("both have arrived", () => heard.length >= expected.length);
    // What this computer sends to itself now arrives after what QEMU has sent.
    const marker = connect(port, "127.0.0.1");
    await once(marker, "close");
    datagrams.send("marker", port, "127.0.0.1");
    await until("the marker has arrived", () => heard.includes("marker"));
    expect(heard.toSorted()).toEqual([...expected, "connected", "marker"].toSorted());
    datagrams.close();
    server.close();
  },
);
