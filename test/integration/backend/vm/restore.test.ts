/** Restores of real QEMUs on a computer whose disk or ports have been taken meanwhile. */

import { readFile, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Snapshots } from "../../../../src/backend/contract.ts";
import type { StoredCluster } from "../../../../src/backend/vm/cluster-facts.ts";
import {
  allProcessFiles,
  endMachines,
  machineFiles,
} from "../../../../src/backend/vm/machines/machine-process.ts";
import { queryRunState } from "../../../../src/backend/vm/qemu/monitor.ts";
import { createVmBackend } from "../../../../src/backend/vm/vm-backend.ts";
import { generateKeyPair } from "../../../../src/ssh/keys.ts";
import { createKnownHosts } from "../../../../src/ssh/openssh-files.ts";
import { creationFiles } from "../../../../src/store/creation-folder.ts";
import { type Runtime, systemClock } from "../../../../src/system/runtime.ts";
import { silentProgress } from "../../../support/silent-progress.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import { wireKey } from "../../../support/ssh-options.ts";
import { endCountingMachines, qemuLack, startCountingMachines } from "./counting-machines.ts";
import { neverAborted } from "../../../support/never-aborted.ts";

const mountLack =
  process.getuid?.() === 0 && process.platform === "linux"
    ? qemuLack
    : "nothing can be mounted here";
const state: { folder?: Awaited<ReturnType<typeof scratchFolder>>; cluster?: StoredCluster } = {};
const cluster = (): StoredCluster => state.cluster!;
const nodes = () => cluster().facts.nodes;

function runtime(): Runtime {
  const environment = { ...process.env, XDG_STATE_HOME: join(state.folder!.path, "state") };
  return { environment, clock: systemClock, progress: silentProgress };
}

const snapshots = (): Snapshots => createVmBackend(runtime()).local.snapshots;
const record = async () => (await createVmBackend(runtime()).find("counting", neverAborted))!;
const states = async () =>
  Promise.all(
    nodes().map(async (node) => queryRunState(machineFiles(cluster().directory, node).folder)),
  );

beforeAll(async () => {
  if (qemuLack !== undefined) return;
  state.folder = await scratchFolder();
  state.cluster = await startCountingMachines(state.folder.path, runtime());
  await snapshots().create(await record(), "counted", neverAborted);
});

afterAll(async () => {
  if (state.cluster !== undefined) await endCountingMachines(state.cluster);
  await state.folder?.[Symbol.asyncDispose]();
});

// Shows R119.
test.skipIf(mountLack !== undefined)(
  `a full disk ends a restore before it stops anything, and no copied disk is left (${mountLack ?? "here"})`,
  async () => {
    const { folder, pid } = machineFiles(cluster().directory, nodes()[1]!);
    const running = await readFile(pid, "utf8");
    await Bun.$`mount -t tmpfs -o size=64k tmpfs ${folder}`.quiet();
    try {
      await writeFile(pid, running);
      const failure = await failureOf(snapshots().restore(await record(), "counted", neverAborted));
      expect(failure).toMatchObject({
        id: "capacity-lacking",
        message: expect.stringContaining("The disk is full"),
      });
      const files = await readdir(join(cluster().directory, "machines"), { recursive: true });
      expect(files.filter((name) => name.endsWith(".restored"))).toEqual([]);
    } finally {
      await Bun.$`umount ${folder}`.quiet();
    }
    expect(await states()).toEqual(["running", "running"]);
  },
);

test.skipIf(qemuLack !== undefined)(
  "machines whose ports are taken get other ports, and keep their host keys",
  async () => {
    const knownHosts = () => createKnownHosts(creationFiles(cluster().directory).knownHosts);
    const keys = nodes().map(() => wireKey(generateKeyPair("host").publicKey));
    const before = (await record()).nodes.map(({ ssh }) => ssh.port);
    for (const [place, port] of before.entries())
      await knownHosts().pin("127.0.0.1", port, keys[place]!);
    await endMachines(await allProcessFiles(cluster().directory), systemClock, neverAborted);
    const taken = Bun.listen({
      hostname: "127.0.0.1",
      port: before[1]!,
      socket: { data: () => {} },
    });
    try {
      await snapshots().restore(await record(), "counted", neverAborted);
    } finally {
      taken.stop(true);
    }
    const after = (await record()).nodes.map(({ ssh }) => ssh.port);
    expect([after[0] === before[0], after[1] === before[1]]).toEqual([true, false]);
    for (const [place, port] of after.entries()) {
      expect(await knownHosts().expected("127.0.0.1", port)).toEqual(keys[place]);
    }
  },
);
