/** Sessions over a master connection, whose packets a hostile node has written. */
import { expect, jest, test } from "bun:test";
import type { Socket } from "node:net";
import { NoSession, openMasterSession } from "../../../../src/ssh/session/master-session.ts";
import { failureOf } from "../../../support/failure-of.ts";
import {
  framed,
  opened,
  packet,
  runTrue,
  startMaster,
  sshString,
  u32,
} from "../../../support/ssh-master.ts";
import { until } from "../../../support/until.ts";

test("a command's output and status arrive, also after the time limit for the opening", async () => {
  const packets = [
    packet(93, u32(1)),
    packet(94, sshString("hello")),
    packet(98, sshString("exit-status"), Buffer.from([0]), u32(3)),
    packet(97),
  ];
  jest.useFakeTimers();
  try {
    await using master = await startMaster(opened, (socket) => {
      jest.advanceTimersByTime(5_000);
      socket.write(Buffer.concat(packets));
    });
    expect(await runTrue(master.path)).toEqual({ status: 3, output: 5 });
  } finally {
    jest.useRealTimers();
  }
});

test.each([
  ["a window that grows by nothing", packet(93)],
  ["a status that is cut off", packet(98, sshString("exit-status"), Buffer.from([0, 1]))],
  ["a signal that is cut off", packet(98, sshString("exit-signal"), Buffer.from([0, 1]))],
  ["a request without a name", packet(98)],
  ["a packet without a channel", framed(Buffer.from([0, 93, 0, 0, 0]))],
  ["a packet that is too long", u32(2 ** 31)],
])("%s ends the session, not the program", async (_, bytes) => {
  await using master = await startMaster(opened, (socket) => void socket.write(bytes));
  expect((await runTrue(master.path)).status).toBeUndefined();
});

test("an opening that is cut off opens no session", async () => {
  await using master = await startMaster(packet(91, u32(7)), () => {});
  expect(openMasterSession(master.path)).rejects.toThrow("opens no session");
});

test("a node that has no session left opens none, without a wait", async () => {
  jest.useFakeTimers();
  try {
    await using master = await startMaster(
      packet(92, u32(1), sshString("open failed"), sshString("")),
      () => {},
    );
    expect(await failureOf(openMasterSession(master.path))).toBeInstanceOf(NoSession);
  } finally {
    jest.useRealTimers();
  }
});

/** Collects the packets of the client: their types, and what follows the number of the channel. */
function packetsOf(socket: Socket): (readonly [type: number, rest: string])[] {
  const found: (readonly [number, string])[] = [];
  const state = { unread: Buffer.alloc(0) };
  socket.on("data", (chunk: Buffer) => {
    state.unread = Buffer.concat([state.unread, chunk]);
    while (state.unread.length >= 4 && state.unread.length >= 4 + state.unread.readUInt32BE(0)) {
      const length = state.unread.readUInt32BE(0);
      found.push([state.unread[5]!, state.unread.toString("latin1", 10, 4 + length)]);
      state.unread = state.unread.subarray(4 + length);
    }
  });
  return found;
}

test("stdin is sent as far as the node accepts it, then its end, and the close is answered", async () => {
  const longest = "f".repeat(32_768);
  const seen: { packets?: ReturnType<typeof packetsOf> } = {};
  await using master = await startMaster(packet(91, u32(7, 5, 32_768)), async (socket) => {
    const packets = (seen.packets = packetsOf(socket));
    socket.write(packet(94, sshString("go")));
    await until("the window is full", () => packets.length === 1);
    socket.write(packet(93, u32(100_000)));
    await until("stdin has ended", () => packets.some(([type]) => type === 96));
    socket.write(
      Buffer.concat([packet(98, sshString("exit-status"), Buffer.from([0]), u32(0)), packet(97)]),
    );
  });
  using session = await openMasterSession(master.path);
  const channel = session.exec("cat");
  channel.stderr.resume();
  channel.once("data", () => void channel.end(`abcde${longest}gh`));
  await new Promise((resolve) => channel.once("close", resolve));
  await until("the close is answered", () => seen.packets!.some(([type]) => type === 97));
  expect(seen.packets).toEqual([
    ...["abcde", longest, "gh"].map((data) => [94, sshString(data).toString("latin1")] as const),
    [96, ""],
    [97, ""],
  ]);
});

test("stderr and a signal's name arrive, and of the node's questions only those that want an answer get one", async () => {
  const seen: { packets?: ReturnType<typeof packetsOf> } = {};
  await using master = await startMaster(opened, async (socket) => {
    const packets = (seen.packets = packetsOf(socket));
    for (const answered of [0, 1])
      socket.write(packet(98, sshString("keepalive@openssh.com"), Buffer.from([answered])));
    await until("an answer", () => packets.length > 0);
    const killed = [sshString("exit-signal"), Buffer.from([0]), sshString("TERM")];
    socket.write(
      Buffer.concat([packet(95, u32(1), sshString("why")), packet(98, ...killed), packet(97)]),
    );
  });
  using session = await openMasterSession(master.path);
  const channel = session.exec("true");
  const found: unknown[] = [];
  channel.stderr.on("data", (chunk: Buffer) => found.push(String(chunk)));
  channel.on("exit", (...end: readonly unknown[]) => found.push(end)).resume();
  await new Promise((resolve) => channel.once("close", resolve));
  expect(found).toEqual(expect.arrayContaining(["why", [null, "SIGTERM"]]));
  expect(seen.packets!.filter(([type]) => type !== 97)).toEqual([[100, ""]]);
});

test("a server that runs no commands ends the session like ssh", async () => {
  await using master = await startMaster(opened, (socket) => void socket.write(packet(100)));
  expect(await runTrue(master.path)).toEqual({ status: 255, output: 0 });
});

test("a node may send more once most of what it has sent has been read", async () => {
  const flood = Buffer.concat(
    Array.from({ length: 32 }, () => packet(94, sshString("x".repeat(32_768)))),
  );
  const seen: { packets?: ReturnType<typeof packetsOf> } = {};
  await using master = await startMaster(opened, async (socket) => {
    const packets = (seen.packets = packetsOf(socket));
    for (let megabytes = 1; megabytes <= 4; megabytes += 1) {
      socket.write(flood);
      await until("more is granted", () => packets.length === megabytes);
    }
    socket.write(packet(97));
  });
  expect((await runTrue(master.path)).output).toBe(4 * 1024 * 1024);
  const granted = [93, "\0\u0010\0\0"] as const;
  expect(seen.packets!.filter(([type]) => type === 93)).toEqual([
    granted,
    granted,
    granted,
    granted,
  ]);
});

test("a node that sends more than was granted ends the session, instead of filling the memory", async () => {
  const flood = Buffer.concat(
    Array.from({ length: 10 }, () => packet(94, sshString("x".repeat(32_000)))),
  );
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
