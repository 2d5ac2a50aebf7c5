/** The state of a machine as QEMU's monitor reports it, with real QEMUs that run nothing. */

import { mkdir, readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { machineFiles, machineLife } from "../../../../../src/backend/vm/machines/machine-process.ts";
import { monitorName, monitorOptions, queryRunState } from "../../../../../src/backend/vm/qemu/monitor.ts";
import { scratchFolder } from "../../../../support/scratch-folder.ts";

const qemu = "qemu-system-x86_64";
const lack = Bun.which(qemu) === null ? `no ${qemu} here` : undefined;

test.skipIf(lack !== undefined).each([
  ["short", ""],
  ["longer than a socket's may be", "x".repeat(150)],
])(
  `a QEMU answers if the path of its folder is %s (${lack ?? "here"})`,
  async (_, name) => {
    await using scratch = await scratchFolder();
    const folder = join(scratch.path, name);
    await mkdir(folder, { recursive: true });
    const words = ["-nodefaults", "-display", "none", "-machine", "none", ...monitorOptions.flat()];
    await using machine = Bun.spawn([qemu, ...words], { cwd: folder, stdout: "ignore", stderr: "ignore" });
    while ((await queryRunState(folder)) === undefined) await Bun.sleep(20);
    const atOnce = await Promise.all(Array.from({ length: 4 }, async () => queryRunState(folder)));
    expect(atOnce).toEqual(Array.from({ length: 4 }, () => "running"));
    machine.kill();
    await machine.exited;
    expect(await queryRunState(folder)).toBeUndefined();
  },
  30_000,
);

test("a machine whose monitor reports a failure has failed, with QEMU's message", async () => {
  await using folder = await scratchFolder();
  const files = machineFiles(folder.path, { role: "agent", index: 0 });
  await mkdir(files.folder, { recursive: true });
  await using process = Bun.spawn(["sh", "-c", "while :; do sleep 0.2; done", "qemu", "-pidfile", files.pid]);
  await writeFile(files.pid, `${process.pid}\n`);
  await writeFile(files.started, "");
  await writeFile(files.qemuLog, "KVM internal error. Suberror: 1\nEAX=0\n");
  const run = { state: "running" };
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.write('{"QMP": {}}\r\n{"event": "RESUME"}\r\n{"return": {}, "id": 0}\r\n');
    socket.write(`${JSON.stringify({ return: { status: run.state }, id: 1 })}\r\n`);
  });
  const listening = Promise.withResolvers<void>();
  server.listen(join(files.folder, monitorName), () => listening.resolve());
  await listening.promise;
  expect(await machineLife(files)).toBe("running");
  run.state = "internal-error";
  expect(await machineLife(files)).toEqual({ failure: "internal-error", said: "KVM internal error. Suberror: 1" });
  run.state = "paused";
  expect(await machineLife(files)).toBe("paused");
  server.close();
  process.kill("SIGKILL");
  await process.exited;
  expect(await machineLife(files)).toEqual({ failure: "crashed", said: "KVM internal error. Suberror: 1" });
  expect(await readFile(files.qemuLog, "utf8")).toContain("EAX");
});
