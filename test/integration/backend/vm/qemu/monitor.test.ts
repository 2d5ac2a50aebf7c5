/** The state of a machine as QEMU's monitor reports it, with real QEMUs that run nothing. */

import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { type Socket, createServer } from "node:net";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { machineLife } from "../../../../../src/backend/vm/machines/machine-life.ts";
import { filesIn, machineFiles } from "../../../../../src/backend/vm/machines/machine-process.ts";
import {
  monitorName,
  monitorOptions,
  queryRunState,
  runOnMonitor,
} from "../../../../../src/backend/vm/qemu/monitor.ts";
import { unmarked } from "../../../../../src/outside-text.ts";
import { failureOf } from "../../../../support/failure-of.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";
import { startQemuProcess } from "../../../../support/qemu-process.ts";
import { scratchFolder } from "../../../../support/scratch-folder.ts";
import { startMonitor } from "../scripted-monitor.ts";

const qemu = "qemu-system-x86_64";
const lack = Bun.which(qemu) === null ? `no ${qemu} here` : undefined;

test.skipIf(lack !== undefined).each([
  ["short", ""],
  ["longer than a socket's may be", "x".repeat(150)],
])(`a QEMU answers if the path of its folder is %s (${lack ?? "here"})`, async (_, name) => {
  await using scratch = await scratchFolder();
  const folder = join(scratch.path, name);
  await mkdir(folder, { recursive: true });
  const words = [
    "-nodefaults",
    "-display",
    "none",
    "-machine",
    "none",
    ...monitorOptions.flat(),
    "-pidfile",
    "qemu.pid",
  ];
  await using machine = Bun.spawn([qemu, ...words], {
    cwd: folder,
    stdout: "ignore",
    stderr: "ignore",
  });
  while ((await queryRunState(folder)) === undefined) await Bun.sleep(20);
  const atOnce = await Promise.all(Array.from({ length: 4 }, async () => queryRunState(folder)));
  expect(atOnce).toEqual(Array.from({ length: 4 }, () => "running"));
  machine.kill();
  await machine.exited;
  expect(await queryRunState(folder)).toBeUndefined();
});

/** Listens where QEMU's monitor would, and answers every command but the first with this. */
async function answering(folder: string, answer: () => object): Promise<Disposable> {
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.write('{"QMP": {}}\r\n{"event": "RESUME"}\r\n{"return": {}, "id": 0}\r\n');
    socket.write(`${JSON.stringify({ ...answer(), id: 1 })}\r\n`);
  });
  const listening = Promise.withResolvers<void>();
  server.listen(join(folder, monitorName), () => listening.resolve());
  await listening.promise;
  return { [Symbol.dispose]: () => void server.close() };
}

test.each([
  ["a sentence", "Device 'x' has no medium.", "Device 'x' has no medium"],
  ["no text", 7, ""],
  [
    "a long text",
    `a\nb \x1b[31m::error::${" x".repeat(100_000)}`,
    expect.stringMatching(/^a b : :error::[ x]{1,500}…$/),
  ],
])("what QEMU says about a command is quoted in one short line: %s", async (_, desc, quoted) => {
  await using scratch = await scratchFolder();
  const folder = join(scratch.path, "agent_0");
  await mkdir(folder);
  using _server = await answering(folder, () => ({ error: { class: "GenericError", desc } }));
  const { id, message } = await failureOf(
    runOnMonitor(folder, [{ execute: "cont" }], neverAborted),
  );
  const [, said] = /^QEMU did not do "cont" for agent_0: (.*)\.$/s.exec(unmarked(message)) ?? [];
  expect([id, said]).toEqual(["engine-failed", quoted]);
});

test("a QEMU that a busy computer lets answer only after six seconds is waited for", async () => {
  await using folder = await scratchFolder();
  await using _ = await startMonitor(folder.path, async () => {
    await Bun.sleep(6_000);
    return { status: "running" };
  });
  expect(await queryRunState(folder.path)).toBe("running");
});

test("a QEMU that serves others is waited for as long as it runs, and one that has gone is not", async () => {
  await using folder = await scratchFolder();
  const files = filesIn(folder.path);
  // Nobody listens at the socket, as if too many waited.
  const server = Bun.listen({ unix: join(folder.path, "other"), socket: { data() {} } });
  await rename(join(folder.path, "other"), join(folder.path, monitorName));
  server.stop(true);
  await using process = await startQemuProcess(files.pid);
  await writeFile(files.pid, `${process.pid}\n`);
  const ended = { is: false };
  const asked = failureOf(
    runOnMonitor(folder.path, [{ execute: "stop" }], neverAborted).finally(() => {
      ended.is = true;
    }),
  );
  await Bun.sleep(500);
  expect(ended.is).toBe(false);
  process.kill("SIGKILL");
  expect((await asked).message).toContain("ECONNREFUSED");
});

test("a run state that QEMU cannot have is none", async () => {
  await using folder = await scratchFolder();
  const answer: { status?: unknown } = {};
  using _ = await answering(folder.path, () => ({ return: answer }));
  for (const status of [undefined, "", "x".repeat(1000), "two\nlines", 7]) {
    answer.status = status;
    expect(await queryRunState(folder.path)).toBeUndefined();
  }
});

test("a QEMU that goes away is an error, and an interrupt ends the wait for one that does not answer", async () => {
  await using folder = await scratchFolder();
  const interrupted = new AbortController();
  const turns = [
    (socket: Socket) => void socket.end(),
    () => interrupted.abort(new Error("interrupted")),
  ];
  const server = createServer((socket) => void socket.once("data", () => turns.shift()!(socket)));
  const listening = Promise.withResolvers<void>();
  server.listen(join(folder.path, monitorName), () => listening.resolve());
  await listening.promise;
  const stop = async () => runOnMonitor(folder.path, [{ execute: "stop" }], interrupted.signal);
  expect(await failureOf(stop())).toMatchObject({
    id: "engine-failed",
    message: expect.stringMatching(/^QEMU did not do "stop" for .*: it ended\.$/),
  });
  expect((await failureOf(stop())).message).toBe("interrupted");
  server.close();
});

test("a machine whose monitor reports a failure has failed, with QEMU's message", async () => {
  await using folder = await scratchFolder();
  const files = machineFiles(folder.path, { role: "agent", index: 0 });
  await mkdir(files.folder, { recursive: true });
  await using process = await startQemuProcess(files.pid);
  await writeFile(files.pid, `${process.pid}\n`);
  await writeFile(files.started, "");
  await writeFile(files.qemuLog, "KVM internal error. Suberror: 1\nEAX=0\n");
  const run = { state: "running" };
  using _ = await answering(files.folder, () => ({ return: { status: run.state } }));
  expect(await machineLife(files)).toBe("running");
  run.state = "internal-error";
  expect(await machineLife(files)).toEqual({
    failure: "internal-error",
    said: "KVM internal error. Suberror: 1",
  });
  run.state = "paused";
  expect(await machineLife(files)).toBe("paused");
  process.kill("SIGKILL");
  await process.exited;
  expect(await machineLife(files)).toEqual({
    failure: "crashed",
    said: "KVM internal error. Suberror: 1",
  });
  expect(await readFile(files.qemuLog, "utf8")).toContain("EAX");
});
