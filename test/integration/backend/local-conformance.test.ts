/**
 * What power and snapshots of every backend on this computer promise: the contract in src/backend/contract.ts. A new backend gets a row in `benches`, and
 * tests beside this one for what only its machines can show.
 */
import { join } from "node:path";
import { describe, expect, test } from "bun:test";
import type { Backend, LocalPart } from "../../../src/backend/contract.ts";
import { createVmBackend } from "../../../src/backend/vm/vm-backend.ts";
import type { ClusterRecord, NodeRecord } from "../../../src/model/cluster-record.ts";
import { systemClock } from "../../../src/system/runtime.ts";
import { failureOf } from "../../support/failure-of.ts";
import { machinesLack } from "../../support/install-machine.ts";
import { neverAborted } from "../../support/never-aborted.ts";
import { recordingProgress } from "../../support/recording-progress.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";
import { openRunning } from "./container/scripted-machine.ts";
import { qemuLack, startCountingMachines } from "./vm/counting-machines.ts";

/** A running cluster of a master and an agent. */
interface Bench extends AsyncDisposable {
  readonly backend: Pick<Backend<never>, "find" | "remove"> & { readonly local: LocalPart };
  readonly id: string;
}

async function openContainers(): Promise<Bench> {
  return { ...(await openRunning("docker")), id: "own" };
}

async function openVms(): Promise<Bench> {
  const folder = await scratchFolder();
  const environment = { ...process.env, XDG_STATE_HOME: join(folder.path, "state") };
  const runtime = { environment, clock: systemClock, progress: recordingProgress().progress };
  await startCountingMachines(folder.path, runtime);
  const backend = createVmBackend(runtime);
  return {
    backend,
    id: "counting",
    [Symbol.asyncDispose]: async () => {
      const left = await backend.find("counting", neverAborted);
      if (left !== undefined) await backend.remove(left, neverAborted);
      await folder[Symbol.asyncDispose]();
    },
  };
}

const benches = [
  ["container", openContainers, machinesLack],
  ["vm", openVms, qemuLack],
] as const;

describe.each(benches)("%s", (_name, open, lack) => {
  const check = test.skipIf(lack !== undefined);
  const find = async ({ backend, id }: Bench): Promise<ClusterRecord> =>
    (await backend.find(id, neverAborted))!;
  const states = async (bench: Bench): Promise<readonly NodeRecord["state"][]> =>
    (await find(bench)).nodes.map(({ state }) => state);
  const addresses = ({ nodes }: ClusterRecord) =>
    nodes.map(({ ssh, privateAddress }) => [ssh.host, ssh.port, privateAddress]);

  check(
    `nodes pause and continue, and start at their addresses after a power cut (${lack ?? "here"})`,
    async () => {
      await using bench = await open();
      const { power } = bench.backend.local;
      const before = await find(bench);
      const [, agent] = before.nodes as [NodeRecord, NodeRecord];
      await power.pause(before, [agent], neverAborted);
      expect(await states(bench)).toEqual(["running", "paused"]);
      await power.resume(before, [agent], neverAborted);
      expect(await states(bench)).toEqual(["running", "running"]);
      await power.cutPower(before, [agent], neverAborted);
      expect(await states(bench)).toEqual(["running", "stopped"]);
      // The one that runs is left alone, and so are both the second time.
      for (const _ of ["once", "again"])
        await power.start(await find(bench), before.nodes, neverAborted);
      expect(await states(bench)).toEqual(["running", "running"]);
      expect(addresses(await find(bench))).toEqual(addresses(before));
    },
  );

  check("a snapshot brings back all nodes at their addresses, until it is deleted", async () => {
    await using bench = await open();
    const { snapshots, power } = bench.backend.local;
    const before = await find(bench);
    expect(await snapshots.list(before, neverAborted)).toEqual([]);
    await snapshots.create(before, "first", neverAborted);
    const listed = await snapshots.list(before, neverAborted);
    expect(listed).toMatchObject([{ name: "first", isComplete: true }]);
    expect(listed[0]!.createdAt).toBeDate();
    await power.cutPower(before, before.nodes, neverAborted);
    await snapshots.restore(await find(bench), "first", neverAborted);
    expect(await states(bench)).toEqual(["running", "running"]);
    expect(addresses(await find(bench))).toEqual(addresses(before));
    await snapshots.delete(before, "first", neverAborted);
    expect(await snapshots.list(before, neverAborted)).toEqual([]);
  });

  check("what can't be saved, restored or deleted is named, and changes nothing", async () => {
    await using bench = await open();
    const { snapshots, power } = bench.backend.local;
    const cluster = await find(bench);
    await snapshots.create(cluster, "first", neverAborted);
    const names = async () => (await snapshots.list(cluster, neverAborted)).map(({ name }) => name);
    expect(await failureOf(snapshots.create(cluster, "first", neverAborted))).toMatchObject({
      id: "snapshot-exists",
    });
    for (const act of ["restore", "delete"] as const)
      expect(await failureOf(snapshots[act](cluster, "other", neverAborted))).toMatchObject({
        id: "snapshot-not-found",
        hint: "It has: first.",
      });
    expect(await states(bench)).toEqual(["running", "running"]);
    await power.cutPower(cluster, cluster.nodes.slice(1), neverAborted);
    const late = await failureOf(snapshots.create(await find(bench), "late", neverAborted));
    expect(late).toMatchObject({
      id: "machine-failed",
      message: expect.stringContaining("agent_0"),
    });
    expect(await names()).toEqual(["first"]);
  });

  check("removing a cluster removes its snapshots", async () => {
    await using bench = await open();
    const cluster = await find(bench);
    const { snapshots } = bench.backend.local;
    await snapshots.create(cluster, "first", neverAborted);
    await bench.backend.remove(cluster, neverAborted);
    expect(await bench.backend.find(bench.id, neverAborted)).toBeUndefined();
    expect(await snapshots.list(cluster, neverAborted)).toEqual([]);
  });
});
