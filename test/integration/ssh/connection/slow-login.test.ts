/** Logins to servers that need minutes, as a translated machine on a busy computer does. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { once } from "node:events";
import { type AddressInfo, createConnection, createServer, type Socket } from "node:net";
import type { Clock } from "../../../../src/system/runtime.ts";
import { failureOf } from "../../../support/failure-of.ts";
import {
  type OpensshServer,
  opensshLack,
  startOpensshServer,
} from "../../../support/openssh-server.ts";
import { generateKeyPair } from "../../../../src/ssh/keys.ts";
import { connectTo } from "../../../support/ssh-options.ts";
import { until } from "../../../support/until.ts";

const pieceBytes = 300;
const someServer = (port: number) => ({
  port,
  user: "root",
  loginKey: generateKeyPair("login"),
  firstHostKey: generateKeyPair("host"),
});

/** A way to the server, on which what the server sends arrives in small pieces: one while the clock sleeps, and all once `open` is called. */
async function slowWay(port: number) {
  const held: { bytes: Buffer; isOpen: boolean; inside?: Socket; client?: Socket } = {
    bytes: Buffer.alloc(0),
    isOpen: false,
  };
  const release = (count: number): void => {
    held.inside?.write(held.bytes.subarray(0, count));
    held.bytes = held.bytes.subarray(count);
  };
  const proxy = createServer((inside) => {
    held.inside = inside.on("error", () => {});
    const server = createConnection({ port, host: "127.0.0.1" }).on("error", () => {});
    inside.pipe(server);
    server.on("data", (chunk) => {
      held.bytes = Buffer.concat([held.bytes, chunk]);
      if (held.isOpen) release(held.bytes.length);
    });
  }).listen(0, "127.0.0.1");
  await once(proxy, "listening");
  const time = { nowMs: 0, sleeps: 0 };
  const clock: Clock = {
    now: () => time.nowMs,
    sleep: async (ms, signal) => {
      time.nowMs += ms;
      time.sleeps += 1;
      const before = held.client!.bytesRead;
      await until("the server sends", () => held.bytes.length > 0 || signal.aborted);
      release(pieceBytes);
      await until("it has arrived", () => held.client!.bytesRead > before || signal.aborted);
      signal.throwIfAborted();
    },
  };
  const connect = async (): Promise<Socket> => {
    held.client = createConnection({
      port: (proxy.address() as AddressInfo).port,
      host: "127.0.0.1",
    });
    await once(held.client, "connect");
    return held.client;
  };
  const open = (): void => {
    held.isOpen = true;
    release(held.bytes.length);
  };
  return { connect, clock, time, open, [Symbol.asyncDispose]: () => proxy[Symbol.asyncDispose]() };
}

describe.skipIf(opensshLack !== undefined)(`with a real sshd (${opensshLack ?? "here"})`, () => {
  const hold: { server?: OpensshServer } = {};
  const server = (): OpensshServer => hold.server!;
  beforeAll(async () => {
    hold.server = await startOpensshServer([]);
  });
  afterAll(() => server()[Symbol.asyncDispose]());

  test("a login takes as long as it needs while the server goes on answering", async () => {
    await using way = await slowWay(server().port);
    const limits = { connect: way.connect, loginClock: way.clock, silenceMs: 30_000 };
    await using connection = await connectTo(server(), limits);
    expect(way.time.sleeps).toBeGreaterThan(3);
    expect(way.time.nowMs).toBeGreaterThan(90_000);
    way.open();
    const ended = await connection.run({ argv: ["echo", "here"] }, new AbortController().signal);
    expect(ended).toMatchObject({ status: 0, stdout: "here\n" });
  });
});

test("a server that goes on talking without ever admitting a login is given up after ten minutes", async () => {
  const held: { inside?: Socket; client?: Socket } = {};
  await using server = createServer((inside) => {
    held.inside = inside.on("error", () => {}).resume();
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const time = { nowMs: 0 };
  const loginClock: Clock = {
    now: () => time.nowMs,
    sleep: async (ms) => {
      time.nowMs += ms;
      const before = held.client!.bytesRead;
      await until("there is a connection", () => held.inside !== undefined);
      // Lines before the greeting: https://www.rfc-editor.org/rfc/rfc4253#section-4.2
      held.inside!.write("wait\r\n");
      await until("it has arrived", () => held.client!.bytesRead > before);
    },
  };
  const connect = async (): Promise<Socket> => {
    held.client = createConnection({ port, host: "127.0.0.1" });
    await once(held.client, "connect");
    return held.client;
  };
  const error = await failureOf(
    connectTo(someServer(port), { connect, loginClock, silenceMs: 60_000 }),
  );
  expect(error).toMatchObject({ id: "connection-failed", transient: true });
  expect(error.message).toContain("did not answer in time");
  expect(time.nowMs).toBe(600_000);
});
