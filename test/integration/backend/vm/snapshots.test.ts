/** Snapshots of real QEMUs whose disks hold a program that only counts. */

import { existsSync } from "node:fs";
import { appendFile, mkdir, readFile, readdir, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Snapshots } from "../../../../src/backend/contract.ts";
import { lockMachines } from "../../../../src/backend/shared/lock-machines.ts";
import type { StoredCluster } from "../../../../src/backend/vm/cluster-facts.ts";
import {
  allProcessFiles,
  endMachines,
  isRunning,
  machineFiles,
} from "../../../../src/backend/vm/machines/machine-process.ts";
import { queryRunState, runOnMonitor } from "../../../../src/backend/vm/qemu/monitor.ts";
import { snapshotsFolder } from "../../../../src/backend/vm/snapshots/snapshot-files.ts";
import { createVmBackend } from "../../../../src/backend/vm/vm-backend.ts";
import { type Runtime, systemClock } from "../../../../src/system/runtime.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { recordingProgress } from "../../../support/recording-progress.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import { until } from "../../../support/until.ts";
import {
  endCountingMachines,
  qemuLack,
  readCount,
  startCountingMachines,
} from "./counting-machines.ts";
import { neverAborted } from "../../../support/never-aborted.ts";

/** How the steps of all commands ended. */
const { progress, steps } = recordingProgress();
const state: { folder?: Awaited<ReturnType<typeof scratchFolder>>; cluster?: StoredCluster } = {};
const cluster = (): StoredCluster => state.cluster!;
const nodes = () => cluster().facts.nodes;
const monitors = (): readonly string[] =>
  nodes().map((node) => machineFiles(cluster().directory, node).folder);

function runtime(path?: string, folder = state.folder!.path): Runtime {
  const own = { XDG_STATE_HOME: join(folder, "state"), ...(path !== undefined && { PATH: path }) };
  return { environment: { ...process.env, ...own }, clock: systemClock, progress };
}

/** As a new command would open them. */
const snapshots = (path?: string): Snapshots => createVmBackend(runtime(path)).local.snapshots;
const record = async () => (await createVmBackend(runtime()).find("counting", neverAborted))!;

const counts = async (): Promise<readonly number[]> => Promise.all(monitors().map(readCount));
const states = async () => Promise.all(monitors().map(queryRunState));
const names = async (): Promise<readonly string[]> =>
  readdir(snapshotsFolder(cluster().directory)).catch(() => []);

/** Waits until the machines count. */
async function untilCounting(): Promise<void> {
  for (;;) {
    const before = await counts();
    await Bun.sleep(200);
    const after = await counts();
    if (after.every((number, place) => number > before[place]!)) return;
  }
}

beforeAll(async () => {
  if (qemuLack !== undefined) return;
  state.folder = await scratchFolder();
  state.cluster = await startCountingMachines(state.folder.path, runtime());
  await untilCounting();
  await snapshots().create(await record(), "counted", neverAborted);
});

afterAll(async () => {
  if (state.cluster !== undefined) await endCountingMachines(state.cluster);
  await state.folder?.[Symbol.asyncDispose]();
});

const checks = test.skipIf(qemuLack !== undefined);

checks(
  `machines continue after a snapshot, and a restore takes them back to it (${qemuLack ?? "here"})`,
  async () => {
    const before = await counts();
    await snapshots().create(await record(), "own", neverAborted);
    expect(await states()).toEqual(["running", "running"]);
    expect(steps.at(-1)).toBe("Save memory and disks: done");
    expect(await snapshots().list(await record(), neverAborted)).toMatchObject([
      { name: "counted", isComplete: true },
      { name: "own", isComplete: true },
    ]);
    const saved = await counts();
    const haveGoneOn = async () =>
      (await counts()).every((count, place) => count > saved[place]! + 40);
    await until("machines that count on for two seconds", haveGoneOn, {
      limitMs: 50_000,
      everyMs: 200,
    });
    const later = await counts();
    await snapshots().restore(await record(), "own", neverAborted);
    expect(steps.slice(-2)).toEqual(["Check the snapshot: done", "Restore memory and disks: done"]);
    const restored = await counts();
    expect(await states()).toEqual(["running", "running"]);
    for (const place of [0, 1]) {
      expect(restored[place]!).toBeGreaterThanOrEqual(before[place]!);
      expect(restored[place]!).toBeLessThan(later[place]!);
    }
    await untilCounting();
    await snapshots().delete(await record(), "own", neverAborted);
    expect((await record()).nodes.map(({ state: each, ssh }) => [each, ssh.port])).toEqual(
      nodes().map(({ ports }) => ["running", ports.ssh]),
    );
  },
);

checks("a restore also starts machines that have ended", async () => {
  await endMachines(await allProcessFiles(cluster().directory), systemClock, neverAborted);
  expect((await record()).nodes.map((node) => node.state)).toEqual(["stopped", "stopped"]);
  const refused = await failureOf(snapshots().create(await record(), "late", neverAborted));
  expect(refused).toMatchObject({ id: "machine-failed" });
  await snapshots().restore(await record(), "counted", neverAborted);
  await untilCounting();
});

checks(
  "a damaged snapshot, and one of another QEMU, are refused before anything is stopped",
  async () => {
    const pids = async () =>
      Promise.all(
        nodes().map(async (node) => readFile(machineFiles(cluster().directory, node).pid, "utf8")),
      );
    const before = await pids();
    await snapshots().create(await record(), "damaged", neverAborted);
    const memory = join(snapshotsFolder(cluster().directory), "damaged", "agent_0", "memory");
    const whole = await readFile(memory);
    const changed = Buffer.from(whole);
    changed[changed.length - 100]! ^= 1;
    await writeFile(memory, changed);
    const refusal = async (path?: string) =>
      failureOf(snapshots(path).restore(await record(), "damaged", neverAborted));
    expect(await refusal()).toMatchObject({
      id: "snapshot-unusable",
      message: expect.stringContaining("agent_0/memory has changed"),
    });
    await rm(memory);
    expect(await refusal()).toMatchObject({
      id: "snapshot-unusable",
      message: expect.stringContaining("agent_0/memory is missing"),
    });
    await writeFile(memory, whole);
    const bin = join(state.folder!.path, "bin");
    await mkdir(bin);
    await writeFile(
      join(bin, "qemu-system-x86_64"),
      "#!/bin/sh\necho QEMU emulator version 9.9.9\n",
      { mode: 0o755 },
    );
    expect(await refusal(`${bin}:${process.env["PATH"]}`)).toMatchObject({
      id: "snapshot-unusable",
      message: expect.stringMatching(
        /was made by QEMU \d+\.\d+\.\d+, and this computer has 9\.9\.9/,
      ),
    });
    const upgraded = snapshots(`${bin}:${process.env["PATH"]}`);
    expect(await failureOf(upgraded.create(await record(), "other", neverAborted))).toMatchObject({
      id: "engine-failed",
      message: expect.stringMatching(
        /its machines run under QEMU \d+\.\d+\.\d+, and this computer has QEMU 9\.9\.9/,
      ),
      hint: expect.stringContaining("Restart the whole cluster"),
    });
    await appendFile(join(snapshotsFolder(cluster().directory), "damaged", "snapshot.json"), "}");
    expect(await refusal()).toMatchObject({
      message: expect.stringContaining("snapshot.json cannot be read"),
    });
    expect(await pids()).toEqual(before);
    expect(await states()).toEqual(["running", "running"]);
    await snapshots().delete(await record(), "damaged", neverAborted);
    expect(await names()).toEqual(["counted"]);
  },
);

checks(
  "a restored machine maps the snapshot's memory, and goes on when that snapshot is deleted and made again",
  async () => {
    await snapshots().create(await record(), "mapped", neverAborted);
    await snapshots().restore(await record(), "mapped", neverAborted);
    const memory = join(snapshotsFolder(cluster().directory), "mapped", "agent_0", "memory");
    const pid = (await readFile(machineFiles(cluster().directory, nodes()[1]!).pid, "utf8")).trim();
    const mapped = (await readFile(`/proc/${pid}/maps`, "utf8"))
      .split("\n")
      .find((line) => line.includes(memory));
    expect(mapped).toMatch(/^\S+ rw-p /);
    await snapshots().delete(await record(), "mapped", neverAborted);
    await untilCounting();
    await snapshots().create(await record(), "mapped", neverAborted);
    await untilCounting();
    await snapshots().restore(await record(), "mapped", neverAborted);
    await untilCounting();
    await snapshots().delete(await record(), "mapped", neverAborted);
  },
);

/** QEMU's programs on a PATH where one that is started with these words kills whatever starts it, after another shell command. */
async function pathThatKills(program: string, words: string, first = ":"): Promise<string> {
  const bin = join(state.folder!.path, `killing-${program}-${words.replaceAll(/\W/g, "")}`);
  await mkdir(bin);
  const script = `#!/bin/sh\ncase "$*" in *${words}*) ${first}; kill -KILL $PPID ;; esac\nexec ${Bun.which(program)} "$@"\n`;
  await writeFile(join(bin, program), script, { mode: 0o755 });
  return `${bin}:${process.env["PATH"]}`;
}

async function killed(words: readonly string[], path: string): Promise<void> {
  const own = join(import.meta.dir, "snapshot-program.ts");
  const env = { ...runtime(path).environment };
  const child = Bun.spawn([process.execPath, own, ...words], { env, stderr: "ignore" });
  await child.exited;
  expect(child.signalCode).toBe("SIGKILL");
}

checks.each([
  ["it asks for the version", "qemu-system-x86_64", "--version"],
  ["it looks at a saved disk", "qemu-img", "info"],
  ["it starts the network", "qemu-system-x86_64", "hubid=0,netdev=socket0"],
  ["it starts the first machine", "qemu-system-x86_64", "vm-01234567-0"],
  ["it starts the last machine", "qemu-system-x86_64", "vm-01234567-1"],
])(
  "a restore that is killed when %s can be repeated, which removes what it left",
  async (_, program, words) => {
    await killed(["restore", "counting", "counted"], await pathThatKills(program, words));
    await snapshots().restore(await record(), "counted", neverAborted);
    await untilCounting();
    expect(await names()).toEqual(["counted"]);
    const files = await readdir(join(cluster().directory, "machines"), { recursive: true });
    expect(files.filter((name) => name.endsWith(".restored"))).toEqual([]);
    // They stay, because a machine may be stopped and started again.
    const sockets = await readFile(
      join(cluster().directory, "machines", "network", "sockets"),
      "utf8",
    );
    expect((await stat(sockets)).isDirectory()).toBe(true);
  },
);

const mountLack =
  process.getuid?.() === 0 && process.platform === "linux"
    ? qemuLack
    : "nothing can be mounted here";

test.skipIf(mountLack !== undefined)(
  `a full disk ends a snapshot with a clear error, leaves nothing behind, and the machines continue (${mountLack ?? "here"})`,
  async () => {
    const folder = snapshotsFolder(cluster().directory);
    await Bun.$`mount -t tmpfs -o size=1m tmpfs ${folder}`.quiet();
    try {
      const failure = await failureOf(snapshots().create(await record(), "full", neverAborted));
      expect(failure).toMatchObject({
        id: "capacity-lacking",
        message: expect.stringContaining("The disk is full"),
      });
      expect(await names()).toEqual([]);
      expect(await states()).toEqual(["running", "running"]);
    } finally {
      await Bun.$`umount ${folder}`.quiet();
    }
    expect(await names()).toEqual(["counted"]);
  },
);

checks("of two concurrent restores, one waits for the other", async () => {
  const again = async () => snapshots().restore(await record(), "counted", neverAborted);
  await Promise.all([again(), again()]);
  expect(await states()).toEqual(["running", "running"]);
  await untilCounting();
});

checks("an interrupted snapshot leaves nothing behind, and the machines continue", async () => {
  const interrupted = new AbortController();
  const making = snapshots().create(await record(), "cut", interrupted.signal);
  // It stays for as long as the machines may be paused. Asking QEMU would take longer than the pause.
  await until("the machines are being paused", () =>
    existsSync(join(cluster().directory, "paused")),
  );
  interrupted.abort(new Error("interrupted"));
  expect(await failureOf(making)).toMatchObject({ message: "interrupted" });
  expect(await states()).toEqual(["running", "running"]);
  expect(await names()).toEqual(["counted"]);
});

checks(
  "the paused machines of a killed program continue at the next look at the cluster, unless another process works on them",
  async () => {
    const { directory } = cluster();
    await Promise.all(
      monitors().map(async (folder) => runOnMonitor(folder, [{ execute: "stop" }], neverAborted)),
    );
    await mkdir(join(snapshotsFolder(directory), ".cut"));
    await writeFile(join(directory, "paused"), "");
    {
      await using _ = await lockMachines(
        { environment: {}, clock: systemClock, progress, signal: neverAborted },
        directory,
      );
      await record();
      expect(await states()).toEqual(["paused", "paused"]);
    }
    expect(
      (await snapshots().list(await record(), neverAborted)).find(({ name }) => name === "cut")
        ?.isComplete,
    ).toBe(false);
    expect(await states()).toEqual(["running", "running"]);
    expect(await failureOf(snapshots().restore(await record(), "cut", neverAborted))).toMatchObject(
      {
        id: "snapshot-unusable",
      },
    );
    await snapshots().create(await record(), "cut", neverAborted);
    expect((await names()).toSorted()).toEqual(["counted", "cut"]);
    await snapshots().delete(await record(), "cut", neverAborted);
  },
);

checks(
  "what a killed program saved machines with ends at the next look at the cluster",
  async () => {
    const first = `until [ -s '${join(cluster().directory, "machines", "receiver-master_0", "qemu.pid")}' ]; do sleep 0.1; done`;
    const path = await pathThatKills("qemu-system-x86_64", "receiver-vm-01234567-1", first);
    await killed(["create", "counting", "cut"], path);
    const receivers = async () =>
      (await readdir(join(cluster().directory, "machines"))).filter((name) =>
        name.startsWith("receiver"),
      );
    expect((await receivers()).toSorted()).toEqual(["receiver-agent_0", "receiver-master_0"]);
    const [files] = (await allProcessFiles(cluster().directory)).filter(({ pid }) =>
      pid.includes("receiver-master_0"),
    );
    expect(await isRunning(files!)).toBe(true);
    await until("the receivers have been removed", async () => {
      await record();
      return (await receivers()).length === 0;
    });
    expect(await isRunning(files!)).toBe(false);
    expect(await states()).toEqual(["running", "running"]);
    await snapshots().delete(await record(), "cut", neverAborted);
  },
);
