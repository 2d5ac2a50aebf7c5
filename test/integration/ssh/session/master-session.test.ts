/** Sessions over a master connection, whose packets a hostile node has written. */
import { type Socket, createServer } from "node:net";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { openMasterSession } from "../../../../src/ssh/session/master-session.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import { until } from "../../../support/until.ts";

const u32 = (...values: readonly number[]): Buffer =>
  Buffer.concat(
    values.map((value) => {
      const bytes = Buffer.alloc(4);
      bytes.writeUInt32BE(value);
      return bytes;
    }),
  );
const framed = (...parts: readonly Buffer[]): Buffer => {
  const bytes = Buffer.concat(parts);
  return Buffer.concat([u32(bytes.length), bytes]);
};
/** A packet of SSH's connection protocol for the session's channel, behind which follows what the node sends. */
const packet = (type: number, ...rest: readonly Buffer[]): Buffer => framed(Buffer.from([0, type]), u32(0), ...rest);
const text = (value: string): Buffer => Buffer.concat([u32(value.length), Buffer.from(value)]);
const opened = packet(91, u32(7, 2 ** 20, 32_768));

/** A master connection that opens a session, and sends these packets once a command begins. */
async function startMaster(answer: Buffer, packets: (socket: Socket) => void) {
  const scratch = await scratchFolder();
  const path = join(scratch.path, "master");
  const server = createServer((socket) => {
    const steps = [
      () => socket.write(Buffer.concat([framed(u32(1, 4)), framed(u32(0x8000000f, 0))])),
      () => socket.write(answer),
      () => packets(socket),
    ];
    socket.on("data", () => steps.shift()?.()).on("error", () => {});
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  return {
    path,
    [Symbol.asyncDispose]: async () => {
      server.close();
      await scratch[Symbol.asyncDispose]();
    },
  };
}

/** Resolves with the exit status and the characters of the command's output, once its channel has closed. */
async function run(path: string) {
  using session = await openMasterSession(path);
  const channel = session.exec("true");
  const seen: { status?: unknown; output: number } = { output: 0 };
  channel.on("exit", (status) => (seen.status = status)).on("data", (chunk: Buffer) => (seen.output += chunk.length));
  channel.stderr.resume();
  await new Promise((resolve) => channel.once("close", resolve));
  return seen;
}

test("a command's output and status arrive", async () => {
  const packets = [packet(94, text("hello")), packet(98, text("exit-status"), Buffer.from([0]), u32(3)), packet(97)];
  await using master = await startMaster(opened, (socket) => void socket.write(Buffer.concat(packets)));
  expect(await run(master.path)).toEqual({ status: 3, output: 5 });
});

test.each([
  ["a window that grows by nothing", packet(93)],
  ["a status that is cut off", packet(98, text("exit-status"), Buffer.from([0, 1]))],
  ["a signal that is cut off", packet(98, text("exit-signal"), Buffer.from([0, 1]))],
  ["a request without a name", packet(98)],
  ["a packet without a channel", framed(Buffer.from([0, 93, 0, 0, 0]))],
  ["a packet that is too long", u32(2 ** 31)],
])("%s ends the session, not the program", async (_, bytes) => {
  await using master = await startMaster(opened, (socket) => void socket.write(bytes));
  expect((await run(master.path)).status).toBeUndefined();
});

test("an opening that is cut off opens no session", async () => {
  await using master = await startMaster(packet(91, u32(7)), () => {});
  expect(openMasterSession(master.path)).rejects.toThrow("opens no session");
});

test("a node that sends more than was granted ends the session, instead of filling the memory", async () => {
  const flood = Buffer.concat(Array.from({ length: 10 }, () => packet(94, text("x".repeat(32_000)))));
  const sent = { packets: 0, isOver: false };
  await using master = await startMaster(opened, (socket) => {
    const timer = setInterval(() => {
      sent.packets += 10;
      if (sent.packets > 1_000) socket.destroy();
      else socket.write(flood);
    });
    socket.on("close", () => {
      clearInterval(timer);
      sent.isOver = true;
    });
  });
  using session = await openMasterSession(master.path);
  const channel = session.exec("true");
  channel.pause();
  await until("the session has ended", async () => sent.isOver);
  expect(channel.readableLength).toBeLessThan(3_000_000);
});
