/** Which process belongs to a machine, with real processes in place of QEMU. */

import { writeFileSync } from "node:fs";
import { mkdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { machineLife } from "../../../../../src/backend/vm/machines/machine-life.ts";
import {
  endMachines,
  isRunning,
  machineFiles,
  startQemu,
} from "../../../../../src/backend/vm/machines/machine-process.ts";
import { readProcessSpace } from "../../../../../src/system/processes/process-identity.ts";
import { type Clock, systemClock } from "../../../../../src/system/runtime.ts";
import { failureOf } from "../../../../support/failure-of.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";
import { startForeignProcess, startQemuProcess } from "../../../../support/qemu-process.ts";
import { scratchFolder } from "../../../../support/scratch-folder.ts";
import { until } from "../../../../support/until.ts";

async function machine(directory: string, index: number) {
  const files = machineFiles(directory, { role: "agent", index });
  await mkdir(files.folder, { recursive: true });
  await writeFile(files.started, "");
  return files;
}

test("a machine's state follows from its process and its files", async () => {
  await using folder = await scratchFolder();
  const files = await machine(folder.path, 0);
  await rm(files.started);
  expect(await machineLife(files)).toBe("unstarted");
  // QEMU leaves it like this for a moment when it starts.
  await writeFile(files.pid, "");
  expect(await machineLife(files)).toBe("unstarted");
  await using process = await startQemuProcess(files.pid);
  await writeFile(files.pid, `${process.pid}\n`);
  await writeFile(files.started, "");
  expect(await machineLife(files)).toBe("running");
  process.kill("SIGKILL");
  await process.exited;
  expect(await machineLife(files)).toBe("killed");
  await rm(files.pid);
  expect(await machineLife(files)).toBe("ended");
});

test("a machine whose QEMU crashed is described by the first two things that QEMU said", async () => {
  await using folder = await scratchFolder();
  const files = await machine(folder.path, 0);
  await writeFile(files.pid, "4194305\n");
  await writeFile(
    files.qemuLog,
    "qemu-system-x86_64: warning: old\nKVM internal error.\nemulation failure\nRAX=0\nmore\n",
  );
  expect(await machineLife(files)).toEqual({
    failure: "crashed",
    said: "KVM internal error; emulation failure",
  });
});

test("a failed start, as when a port is taken meanwhile, doesn't count as the end of a machine", async () => {
  await using folder = await scratchFolder();
  const files = await machine(folder.path, 0);
  await rm(files.started);
  await writeFile(files.console, "");
  expect(await machineLife(files)).toBe("unstarted");
});

test.each(["/elsewhere/qemu.pid", "the machine's own"])(
  "a process that has the id of a dead machine and names the process file %s is neither mistaken for it nor killed",
  async (path) => {
    await using folder = await scratchFolder();
    const files = await machine(folder.path, 0);
    await using foreign = await startForeignProcess(path.startsWith("/") ? path : files.pid);
    await writeFile(files.pid, `${foreign.pid}\n`);
    expect(await machineLife(files)).toBe("killed");
    await endMachines([files], systemClock, neverAborted);
    expect(foreign.exitCode).toBeNull();
    expect(foreign.signalCode).toBeNull();
  },
);

test("a machine is found and ended whatever path leads to its folder, also after a move", async () => {
  await using folder = await scratchFolder();
  const [home, moved, link] = ["home", "moved", "link"].map((name) => join(folder.path, name));
  const files = await machine(home!, 0);
  await using process = await startQemuProcess(files.pid);
  await writeFile(files.pid, `${process.pid}\n`);
  await rename(home!, moved!);
  await symlink(moved!, link!);
  for (const place of [moved!, link!]) {
    const found = machineFiles(place, { role: "agent", index: 0 });
    expect(await machineLife(found)).toBe("running");
  }
  await endMachines([machineFiles(link!, { role: "agent", index: 0 })], systemClock, neverAborted);
  expect(process.signalCode ?? (await process.exited)).toBeTruthy();
});

test("a machine that was started in another container may run: it is not reported as ended, and ending it fails", async () => {
  await using folder = await scratchFolder();
  const files = await machine(folder.path, 0);
  await writeFile(files.pid, "4194305\n");
  const here = await readProcessSpace();
  await writeFile(files.space, JSON.stringify({ ...here, namespace: "pid:[1]" }));
  expect(await isRunning(files)).toBe(true);
  expect(await failureOf(endMachines([files], systemClock, neverAborted))).toMatchObject({
    id: "engine-failed",
    hint: expect.stringContaining(files.pid),
  });
  await writeFile(files.space, JSON.stringify({ ...here, computer: "c", boot: "an earlier one" }));
  expect(await isRunning(files)).toBe(true);
  await writeFile(files.space, JSON.stringify({ ...here, boot: "an earlier one" }));
  expect(await isRunning(files)).toBe(here.computer === undefined);
  // This computer got another name while the machine ran, such as from DHCP.
  await writeFile(files.space, JSON.stringify({ ...here, host: "an earlier name" }));
  expect(await isRunning(files)).toBe(here.boot === undefined);
});

test("ends all given machines, and no others", async () => {
  await using folder = await scratchFolder();
  const [one, two, other] = await Promise.all(
    [0, 1, 2].map((index) => machine(folder.path, index)),
  );
  await using first = await startQemuProcess(one!.pid);
  await using second = await startQemuProcess(two!.pid);
  await using third = await startQemuProcess(other!.pid);
  for (const [files, { pid }] of [
    [one!, first],
    [two!, second],
    [other!, third],
  ] as const) {
    await writeFile(files.pid, `${pid}\n`);
  }
  await endMachines([one!, two!], systemClock, neverAborted);
  expect(await machineLife(one!)).toBe("killed");
  expect(await machineLife(two!)).toBe("killed");
  expect(await machineLife(other!)).toBe("running");
  await endMachines([one!, two!], systemClock, neverAborted);
});

test("a machine that ignores TERM for a minute is killed, even if another one has ended", async () => {
  await using folder = await scratchFolder();
  const [files, ended] = [await machine(folder.path, 0), await machine(folder.path, 1)];
  await using process = await startQemuProcess(
    files.pid,
    `trap '' TERM; : >"$2.ready"; while :; do sleep 0.2; done`,
  );
  await writeFile(files.pid, `${process.pid}\n`);
  await until("it ignores TERM", async () => Bun.file(`${files.pid}.ready`).exists());
  const time = { ms: 0 };
  const sleep = async (ms: number): Promise<void> => {
    if (time.ms === 0) time.ms = 60_000;
    else await Bun.sleep(ms);
  };
  await endMachines([files, ended], { now: () => time.ms, sleep }, neverAborted);
  await process.exited;
  expect([process.signalCode, time.ms]).toEqual(["SIGKILL", 60_000]);
});

test("a machine that is still there after a KILL is an error with its process, because its disk is still in use", async () => {
  await using folder = await scratchFolder();
  const files = await machine(folder.path, 0);
  await using stack = new AsyncDisposableStack();
  const children = await Promise.all(
    Array.from({ length: 8 }, async () => stack.use(await startQemuProcess(files.pid))),
  );
  const [first, ...others] = children.map(({ pid }) => pid);
  await writeFile(files.pid, `${first}\n`);
  const state = { ms: 0, running: first };
  // No process outlives a KILL here, so another one takes its place whenever somebody asks for the time.
  const now = (): number => {
    state.running = others.shift() ?? state.running;
    writeFileSync(files.pid, `${state.running}\n`);
    return state.ms;
  };
  const clock: Clock = { now, sleep: async () => void (state.ms += 60_000) };
  const failure = await failureOf(endMachines([files], clock, neverAborted));
  expect(failure).toMatchObject({
    id: "engine-failed",
    message: `QEMU does not exit: process ${state.running}.`,
  });
});

const locked = {
  status: 1,
  stdout: "",
  stderr: "qemu-system-x86_64: cannot lock PID file: Resource unavailable\n",
};

test("a QEMU that a killed program left ends before another one starts in its place", async () => {
  await using folder = await scratchFolder();
  const files = await machine(folder.path, 0);
  await using other = await startQemuProcess(files.pid);
  await writeFile(files.pid, `${other.pid}\n`);
  const starts: unknown[] = [];
  const start = async () => {
    starts.push(await isRunning(files));
    return starts.length === 1 ? locked : { ...locked, status: 0, stderr: "" };
  };
  expect((await startQemu(files, start, systemClock, neverAborted)).status).toBe(0);
  expect(starts).toEqual([true, false]);
});

test.each([
  ["its place stays taken", locked, 5],
  ["it says anything else", { ...locked, stderr: "no such device" }, 1],
  ["it runs", { ...locked, status: 0, stderr: "" }, 1],
])("a start is final if %s", async (_, end, most) => {
  await using folder = await scratchFolder();
  const files = await machine(folder.path, 0);
  const starts: object[] = [];
  const start = async () => {
    starts.push(end);
    return end;
  };
  expect(await startQemu(files, start, systemClock, neverAborted)).toBe(end);
  expect(starts.length).toBe(most);
});
