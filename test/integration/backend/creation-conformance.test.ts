/** What the creations of every backend promise: the contract in src/backend/contract.ts. A new backend gets a row in `benches`. */
import { mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "bun:test";
import type { Backend, Creation } from "../../../src/backend/contract.ts";
import { type ClusterRecord, nodeCount } from "../../../src/model/cluster-record.ts";
import { generateKeyPair } from "../../../src/ssh/keys.ts";
import { leftIn, openFixture, region } from "../../support/cloud-fixture.ts";
import { failureOf } from "../../support/failure-of.ts";
import { machinesLack } from "../../support/install-machine.ts";
import { neverAborted } from "../../support/never-aborted.ts";
import { openMachine } from "./container/scripted-machine.ts";
import { openCreation, system } from "./vm/created-machines.ts";

interface Bench extends AsyncDisposable {
  readonly backend: Pick<Backend<never>, "find" | "list" | "remove">;
  /** Where the backend keeps its clusters on this computer. */
  readonly root: string;
  readonly id: string;
  /** A creation of a master and an agent. */
  readonly plan: () => Promise<Creation>;
  /** How much there is of any cluster. */
  readonly count: () => Promise<number>;
}

async function openCloud(): Promise<Bench> {
  const fixture = await openFixture({});
  const backend = await fixture.open(region);
  const counts = { master: 1, agent: 1, public_agent: 0 };
  return {
    backend,
    root: join(fixture.runtime.environment["XDG_STATE_HOME"]!, "cluster-e2e", "cloud", region),
    id: "one",
    plan: async () => backend.plan(fixture.request("one", { counts }), neverAborted),
    count: async () => Object.values(leftIn(fixture.cloud)).reduce((sum, each) => sum + each),
    [Symbol.asyncDispose]: async () => fixture[Symbol.asyncDispose](),
  };
}

async function openContainers(): Promise<Bench> {
  const machine = await openMachine();
  const { engine } = machine.world;
  return {
    ...machine,
    id: "own",
    plan: async () => machine.plan(),
    count: async () => engine.containers.length + engine.networks.length,
  };
}

async function openVms(): Promise<Bench> {
  const opened = await openCreation(system("none"));
  return {
    ...opened,
    id: "one",
    plan: async () => opened.another(),
    count: async () => {
      const names = await readdir(opened.root, { recursive: true, withFileTypes: true });
      return names.filter((each) => each.isFile()).length;
    },
  };
}

const { publicKey } = generateKeyPair("test");
const benches = [
  ["cloud", openCloud, undefined],
  ["container", openContainers, machinesLack],
  ["vm", openVms, undefined],
] as const;

describe.each(benches)("%s", (_name, open, lack) => {
  const check = test.skipIf(lack !== undefined);

  async function claim(bench: Bench, creation: Creation, creationId: string): Promise<void> {
    const directory = join(bench.root, `${bench.id}-${creationId}`);
    await mkdir(directory, { recursive: true, mode: 0o700 });
    await creation.claim({ creationId, directory }, neverAborted);
  }

  /** A cloud doesn't show at once what it has launched. */
  async function lookAtBoth(creation: Creation): Promise<ClusterRecord> {
    for (;;) {
      const cluster = await creation.look(neverAborted);
      if (cluster.nodes.length === 2) return cluster;
      await Bun.sleep(creation.firstLogin.lookEveryMs);
    }
  }

  check(
    "a creation is described, found and listed from its launch until it is removed",
    async () => {
      await using bench = await open();
      const creation = await bench.plan();
      expect(nodeCount(creation.summary.counts)).toBe(2);
      expect([await bench.count(), creation.remains()]).toEqual([0, undefined]);
      await claim(bench, creation, "0123456789abcdef");
      expect(creation.remains()?.left).toBeString();
      await creation.launch(publicKey, neverAborted);
      const { nodes } = await lookAtBoth(creation);
      expect(nodes.map(({ role, index }) => [role, index])).toEqual([
        ["master", 0],
        ["agent", 0],
      ]);
      const ids = nodes.map(({ id }) => id);
      for (const found of [
        await creation.describe(neverAborted),
        await bench.backend.find(bench.id, neverAborted),
        ...(await bench.backend.list(neverAborted)),
      ]) {
        expect(found).toMatchObject({
          id: bench.id,
          variant: "oss",
          creationId: "0123456789abcdef",
        });
        expect(found!.nodes.map(({ id }) => id)).toEqual(ids);
      }
      expect(await bench.backend.find("another", neverAborted)).toBeUndefined();
      await creation.stop(neverAborted);
      expect(await creation.remove(neverAborted)).toBeUndefined();
      expect(await bench.count()).toBe(0);
      expect(await bench.backend.find(bench.id, neverAborted)).toBeUndefined();
      expect(await bench.backend.list(neverAborted)).toEqual([]);
    },
  );

  check(
    "of two creations of one id the second is refused, and the first cluster stays",
    async () => {
      await using bench = await open();
      const [first, second] = [await bench.plan(), await bench.plan()];
      await claim(bench, first, "0123456789abcdef");
      const claimed = await bench.count();
      const failure = await failureOf(claim(bench, second, "f".repeat(16)));
      expect(failure).toMatchObject({ id: "cluster-exists", facts: { cluster: bench.id } });
      await second.stop(neverAborted);
      expect(await second.remove(neverAborted)).toBeUndefined();
      expect(await bench.count()).toBe(claimed);
      await first.launch(publicKey, neverAborted);
      await lookAtBoth(first);
      const cluster = (await bench.backend.find(bench.id, neverAborted))!;
      expect(cluster.nodes).toHaveLength(2);
      for (const _ of ["once", "again"]) await bench.backend.remove(cluster, neverAborted);
      expect(await bench.count()).toBe(0);
    },
  );
});
