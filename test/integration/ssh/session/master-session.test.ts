/** Sessions over a master connection, whose packets a hostile node has written. */
import { expect, test } from "bun:test";
import { openMasterSession } from "../../../../src/ssh/session/master-session.ts";
import { framed, opened, packet, runTrue, startMaster, sshString, u32 } from "../../../support/ssh-master.ts";
import { until } from "../../../support/until.ts";

test("a command's output and status arrive", async () => {
  const packets = [
    packet(94, sshString("hello")),
    packet(98, sshString("exit-status"), Buffer.from([0]), u32(3)),
    packet(97),
  ];
  await using master = await startMaster(opened, (socket) => void socket.write(Buffer.concat(packets)));
  expect(await runTrue(master.path)).toEqual({ status: 3, output: 5 });
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

test("a node that sends more than was granted ends the session, instead of filling the memory", async () => {
  const flood = Buffer.concat(Array.from({ length: 10 }, () => packet(94, sshString("x".repeat(32_000)))));
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
