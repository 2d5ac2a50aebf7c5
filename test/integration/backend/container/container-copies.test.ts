/** Clusters that are made from the snapshot of another one, with a scripted engine. */
import { readContainerOptions } from "../../../../src/backend/container/options.ts";
import { join } from "node:path";
import { expect } from "bun:test";
import { labelNames } from "../../../../src/backend/container/records/labels.ts";
import type { ClusterRecord } from "../../../../src/model/cluster-record.ts";
import { creationDirectory } from "../../../../src/store/creation-folder.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import {
  type Machine,
  checks,
  launched,
  openMachine,
  printed,
  publicKey,
  statuses,
} from "./scripted-machine.ts";

/** Creates a cluster from the snapshot `installed` of another one. */
async function copyOf(
  { backend, root }: Machine,
  source: ClusterRecord,
  clusterId: string,
): Promise<ClusterRecord> {
  const creation = await backend.local.snapshots.planCopy(
    { clusterId, source, snapshot: "installed" },
    neverAborted,
  );
  const creationId = clusterId.padEnd(16, "0");
  await creation.claim(
    { creationId, directory: creationDirectory(root, clusterId, creationId) },
    neverAborted,
  );
  await creation.launch(publicKey, neverAborted);
  return creation.look(neverAborted);
}

checks("a copy outlives its source, whose images it still uses", async () => {
  await using machine = await openMachine();
  await launched(machine);
  const { backend, world } = machine;
  const source = (await backend.find("own", neverAborted))!;
  await backend.local.snapshots.create(source, "installed", neverAborted);
  const { id: image, labels } = world.engine.images[0]!;
  const copy = await copyOf(machine, source, "c1");
  expect(world.engine.networks.at(-1)!.labels).toMatchObject({
    [labelNames.copiedFrom]: source.creationId,
  });
  expect(copy.nodes.map(({ role, index, state }) => [role, index, state])).toEqual([
    ["master", 0, "running"],
    ["agent", 0, "running"],
  ]);
  // Snapshots belong to one cluster alone.
  expect(await backend.local.snapshots.list(copy, neverAborted)).toEqual([]);
  await using _ = world.strike(
    {
      call: "images --quiet --no-trunc --filter=dangling=true",
      when: "before",
      answer: printed(image),
    },
    {
      call: "image inspect",
      when: "before",
      answer: printed(JSON.stringify([{ Id: image, Config: { Labels: labels } }])),
    },
    {
      call: `image rm ${image}`,
      when: "before",
      answer: "conflict: image is being used by running container",
    },
  );
  await backend.remove(source, neverAborted);
  expect((await backend.list(neverAborted)).map(({ id }) => id)).toEqual(["c1"]);
  expect(statuses(machine)).toEqual(["running", "running"]);
});

checks(
  "a copy whose claim fails doesn't keep its source from being changed, even if its containers stay",
  async () => {
    await using machine = await openMachine();
    await launched(machine);
    const { backend, world } = machine;
    const source = (await backend.find("own", neverAborted))!;
    await backend.local.snapshots.create(source, "installed", neverAborted);
    {
      await using _ = world.strike({
        call: "create",
        when: "before",
        answer: "no space left on device",
      });
      expect(await failureOf(copyOf(machine, source, "c1"))).toMatchObject({
        id: "capacity-lacking",
      });
    }
    await backend.local.snapshots.delete(source, "installed", neverAborted);
    expect(await backend.local.snapshots.list(source, neverAborted)).toEqual([]);
  },
);

checks(
  "copies have the limits and volumes of their source, and a file leaves out what is on this computer",
  async () => {
    const customVolumes = ["/:/host:ro"];
    const { options } = readContainerOptions({ memory: "1g", customVolumes });
    await using machine = await openMachine("docker", options);
    await launched(machine);
    const { backend, world, told } = machine;
    const source = (await backend.find("own", neverAborted))!;
    await backend.local.snapshots.create(source, "installed", neverAborted);
    const plan = await backend.local.snapshots.planCopy(
      { clusterId: "c1", source, snapshot: "installed" },
      neverAborted,
    );
    expect(plan.summary.facts).toMatchObject({ memory: "1g", volumes: customVolumes });
    expect(Object.fromEntries(plan.summary.lines)).toMatchObject({
      Machines: "2: 1 master, 1 agent, 0 public agents",
      Limits: "memory 1g, CPUs none, each",
      Reached: "at the containers' own addresses if Docker runs on this computer, else through it",
    });
    const path = join(world.folder, "own.zst");
    const how = { replaces: false, encrypt: undefined };
    await backend.local.snapshots.save(
      source,
      "installed",
      { path, withoutBase: false, ...how },
      neverAborted,
    );
    expect(told).toContain("The file does not hold what nodes mount from outside: /:/host:ro");
  },
);

checks(
  "copies of a snapshot and of its file are rolled back without a trace; a snapshot that is gone has none",
  async () => {
    await using machine = await openMachine();
    await launched(machine);
    const { backend, world, root } = machine;
    const source = (await backend.find("own", neverAborted))!;
    await backend.local.snapshots.create(source, "installed", neverAborted);
    const path = join(world.folder, "own.zst");
    const file = { path, withoutBase: false, replaces: false, encrypt: undefined };
    expect(
      await failureOf(
        backend.local.snapshots.save(
          source,
          "installed",
          { ...file, withoutBase: true },
          neverAborted,
        ),
      ),
    ).toMatchObject({ id: "image-not-found" });
    await backend.local.snapshots.save(source, "installed", file, neverAborted);
    const present = () => {
      const { containers, networks, images, volumes } = world.engine;
      return [containers, networks, images]
        .map((things) => things.map(({ id }) => id))
        .concat([...volumes.keys()]);
    };
    const before = present();
    const folder = {
      creationId: "1".repeat(16),
      directory: creationDirectory(root, "c1", "1".repeat(16)),
    };
    const ofSnapshot = { clusterId: "c1", source, snapshot: "installed" };
    const plans = [
      async () => backend.local.snapshots.planCopy(ofSnapshot, neverAborted),
      async () =>
        backend.local.snapshots.planCopy(
          { clusterId: "c1", file: { location: { path, shown: path } } },
          neverAborted,
        ),
    ];
    for (const plan of plans) {
      const creation = await plan();
      expect(Object.fromEntries(creation.summary.lines)["Continues"]).toContain(
        'snapshot "installed" of cluster "own"',
      );
      await creation.claim(folder, neverAborted);
      await creation.launch(publicKey, neverAborted);
      expect((await creation.look(neverAborted)).nodes.map(({ state }) => state)).toEqual([
        "running",
        "running",
      ]);
      expect(await creation.remove(neverAborted)).toBeUndefined();
      expect(present()).toEqual(before);
    }
    const creation = await plans[0]!();
    await backend.local.snapshots.delete(source, "installed", neverAborted);
    expect(await failureOf(creation.claim(folder, neverAborted))).toMatchObject({
      id: "snapshot-not-found",
    });
    await backend.local.snapshots.create(source, "installed", neverAborted);
  },
);
