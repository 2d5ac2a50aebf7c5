/** The life of clusters of a scripted engine; see scripted-machine.ts. */
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { expect, test } from "bun:test";
import {
  containerName,
  labelArguments,
  labelNames,
  networkName,
} from "../../../../src/backend/container/records/labels.ts";
import {
  readEngineNote,
  writeEngineNote,
} from "../../../../src/backend/container/records/engine-note.ts";
import type { Creation } from "../../../../src/backend/contract.ts";
import {
  beginCreation,
  creationDirectory,
  creationFiles,
  endCreation,
  endRemovedCreation,
} from "../../../../src/store/creation-folder.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { machinesLack } from "../../../support/install-machine.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import {
  type Machine,
  checks,
  claimed,
  creationId,
  launched,
  openMachine,
  printed,
  publicKey,
  statuses,
} from "./scripted-machine.ts";
import { nodeCount } from "../../../../src/model/cluster-record.ts";

checks(
  `a creation makes what it describes, with a file of rights, and removes everything (${machinesLack ?? "here"})`,
  async () => {
    await using machine = await openMachine();
    const { plan, steps, told, world, directory, rights } = machine;
    const creation = await plan();
    expect(nodeCount(creation.summary.counts)).toBe(2);
    expect(creation.summary.lines).toContainEqual([
      "Containers",
      "2: 1 master, 1 agent, 0 public agents",
    ]);
    expect(creation.remains()).toBeUndefined();
    expect([statuses(machine), steps]).toEqual([[], []]);

    await creation.claim({ creationId, directory }, neverAborted);
    expect(statuses(machine)).toEqual(["created"]);
    expect(told).toContainEqual(
      expect.stringMatching(/^Nodes run .*, the default under cgroups 2\.$/),
    );
    expect(existsSync(rights)).toBeTrue();
    expect(creation.remains()?.left).toContain("destroy --cluster-id own");

    await creation.launch(publicKey, neverAborted);
    const { nodes } = await creation.look(neverAborted);
    expect(nodes.map(({ state }) => state)).toEqual(["running", "running"]);
    expect(steps).toEqual(["Reserve the cluster id: done", "Start containers: done"]);

    await creation.stop(neverAborted);
    expect(statuses(machine)).toEqual(["exited", "exited"]);
    expect(existsSync(rights)).toBeFalse();
    expect(await creation.remove(neverAborted)).toBeUndefined();
    expect([statuses(machine), world.engine.networks]).toEqual([[], []]);
  },
);

checks("a creation does not look for snapshots of itself", async () => {
  await using machine = await openMachine();
  const { directory, plan, world } = machine;
  await beginCreation(directory, "own", creationId);
  await writeFile(creationFiles(directory).privateKey, "");
  await plan();
  expect(world.engine.calls.filter(([word]) => word === "images" || word === "volume")).toEqual([]);
});

checks("a plan and the search for expired clusters share their questions", async () => {
  await using machine = await openMachine();
  const { backend, plan, world } = machine;
  await Promise.all([plan(), backend.local.removeExpired(neverAborted)]);
  const asked = world.engine.calls.filter(([word]) => word === "ps").length;
  expect(asked).toBe(1);
  await backend.local.removeExpired(neverAborted);
  expect(world.engine.calls.filter(([word]) => word === "ps")).toHaveLength(2);
});

checks("a cluster that was left in another store or engine is named as such", async () => {
  await using machine = await openMachine();
  const { backend, directory, told, world } = machine;
  await beginCreation(directory, "own", creationId);
  const creation = await launched(machine);
  await endCreation(directory, "finished");
  const hint = async () => (await backend.scope.findElsewhere("own", neverAborted)).notes;
  const note = await readEngineNote(directory);
  expect(note).toMatchObject({ address: "", storageDriver: "overlay2" });

  // As where a daemon has another store now: it keeps its networks, and shows none of its containers.
  for (const { id } of world.engine.containers) await world.engine.remove(id);
  await writeEngineNote(directory, { ...note!, storageDriver: "overlayfs" });
  expect((await backend.find("own", neverAborted))?.nodes).toEqual([]);
  expect(told.at(-1)).toContain(
    'Docker has no node of cluster "own": it was made in the storage driver overlayfs, and Docker uses overlay2 now.',
  );

  expect(await creation.remove(neverAborted)).toBeUndefined();
  expect(await backend.find("own", neverAborted)).toBeUndefined();
  expect(await hint()).toEqual([expect.stringContaining("or another Docker answers here now")]);
  await writeEngineNote(directory, { ...note!, address: "DOCKER_CONTEXT=away" });
  expect(await hint()).toEqual([
    "This computer made one with Docker at DOCKER_CONTEXT=away: set that again to use it.",
  ]);
  await endRemovedCreation(directory);
  expect(await hint()).toBeUndefined();
});

checks(
  "a cluster whose time is over is no longer found, and what is left of it is removed",
  async () => {
    await using machine = await openMachine();
    const { backend, directory, passed, told, world } = machine;
    const { privateKey } = creationFiles(directory);
    await beginCreation(directory, "own", creationId);
    await writeFile(privateKey, "");
    const creation = await machine.plan(60_000);
    await creation.claim({ creationId, directory }, neverAborted);
    await creation.launch(publicKey, neverAborted);
    const { expiresAt } = await creation.look(neverAborted);
    expect(expiresAt?.getTime()).toBeWithin(Date.now(), Date.now() + 60_001);
    expect((await backend.find("own", neverAborted))?.expiresAt).toEqual(expiresAt);
    await backend.local.removeExpired(neverAborted);
    expect(statuses(machine)).toEqual(["running", "running"]);

    passed.ms = 60_000;
    expect(await backend.find("own", neverAborted)).toBeUndefined();
    expect(await backend.list(neverAborted)).toEqual([]);
    await machine.plan();
    // Its own program removes it.
    await backend.local.removeExpired(neverAborted);
    expect(statuses(machine)).toEqual(["running", "running"]);

    await endCreation(directory, "finished");
    {
      await using _ = world.strike({
        call: "rm",
        when: "before",
        answer: "device or resource busy",
      });
      await backend.local.removeExpired(neverAborted);
    }
    expect(told.at(-1)).toMatch(
      /^Cannot remove what is left of cluster "own", which ended .*device or resource busy/,
    );
    expect(existsSync(privateKey)).toBeTrue();
    await backend.local.removeExpired(neverAborted);
    expect(told.at(-1)).toMatch(/^Removed what is left of cluster "own", which ended .* ago\)\.$/);
    expect([statuses(machine), world.engine.networks, existsSync(privateKey)]).toEqual([
      [],
      [],
      false,
    ]);
  },
);

checks("a node that ends fails the creation with the last lines of its console", async () => {
  await using machine = await openMachine();
  const creation = await launched(machine);
  const [first] = machine.world.engine.containers;
  await machine.world.engine.kill(first!.id);
  await using _ = machine.world.strike({
    call: "logs",
    when: "before",
    answer: printed("no /sbin/init\n"),
  });
  const failure = await failureOf(creation.look(neverAborted));
  expect(failure).toMatchObject({ id: "machine-failed", hint: expect.stringContaining("systemd") });
  expect(failure.message).toContain("status 137");
  expect(failure.message).toEndWith("\n  no /sbin/init");
  expect(existsSync(machine.rights)).toBeFalse();
});

checks("a node that somebody removes fails the creation, and is named", async () => {
  await using machine = await openMachine();
  const creation = await launched(machine);
  await creation.look(neverAborted);
  const agent = machine.world.engine.containers[1]!;
  await machine.world.engine.remove(agent.id);
  const failure = await failureOf(creation.look(neverAborted));
  expect(failure.id).toBe("machine-failed");
  expect(failure.message).toContain(`agent_0 (${agent.id.slice(0, 12)})`);
  expect(failure.message).toContain("the container was removed");
});

checks("after a start that failed, the engine's permissions are tested again", async () => {
  await using machine = await openMachine();
  const creation = await claimed(machine);
  await using _ = machine.world.strike({
    call: "start",
    when: "before",
    answer: "no space left on device",
  });
  expect((await failureOf(creation.launch(publicKey, neverAborted))).message).toContain(
    "no space left on device",
  );
  expect(machine.steps.at(-1)).toBe("Start containers: failed");
  expect(existsSync(machine.rights)).toBeFalse();
});

checks("only nodes whose own sshd answers blame a firewall for missing logins", async () => {
  await using machine = await openMachine();
  const creation = await launched(machine);
  const blamed = () => machine.told.filter((line) => line.includes("none accepts a login"));
  const pass20Seconds = async (): Promise<void> => {
    await creation.look(neverAborted);
    machine.passed.ms += 20_000;
    await creation.look(neverAborted);
  };
  {
    await using _ = machine.world.strike({ call: "exec", when: "before", answer: "it boots" });
    for (let count = 0; count < 6; count += 1) await pass20Seconds();
    expect(blamed()).toEqual([]);
  }
  await pass20Seconds();
  expect(blamed()).toEqual([]);
  await pass20Seconds();
  expect(blamed()).toEqual([expect.stringMatching(/running for 160 s.* such as a firewall/)]);
});

checks("nodes whose sshd answers nobody are named as such, once", async () => {
  await using machine = await openMachine();
  const creation = await launched(machine);
  await using _ = machine.world.strike({ call: "exec", when: "before", answer: "it boots" });
  for (let count = 0; count < 12; count += 1) {
    await creation.look(neverAborted);
    machine.passed.ms += 20_000;
  }
  const blamed = machine.told.filter((line) => line.includes("none accepts a login"));
  expect(blamed).toEqual([expect.stringMatching(/running for 180 s.* sshd may not run/)]);
});

checks("after a claim that failed, nothing is launched", async () => {
  await using machine = await openMachine();
  await using _ = machine.world.strike({
    call: "network create",
    when: "before",
    answer: "no subnet is left",
  });
  const creation = await machine.plan();
  expect(
    (await failureOf(creation.claim({ creationId, directory: machine.directory }, neverAborted)))
      .id,
  ).toBe("engine-failed");
  expect(machine.steps).toEqual(["Reserve the cluster id: failed"]);
  expect(await failureOf(creation.launch(publicKey, neverAborted))).toBeInstanceOf(TypeError);
  expect(statuses(machine)).toEqual([]);
});

checks("an id that has a cluster is refused, both before the claim and in it", async () => {
  await using machine = await openMachine();
  const late = await machine.plan();
  await launched(machine);
  const refusals = [
    await failureOf(machine.plan()),
    await failureOf(claimOf(late, machine, "f".repeat(16))),
  ];
  for (const refusal of refusals)
    expect(refusal).toMatchObject({
      id: "cluster-exists",
      hint: expect.stringContaining("destroy --cluster-id own"),
    });
  expect(await late.remove(neverAborted)).toBeUndefined();
  expect(statuses(machine)).toEqual(["running", "running"]);
});

const claimOf = async (creation: Creation, { root }: Machine, id: string): Promise<void> =>
  creation.claim({ creationId: id, directory: creationDirectory(root, "own", id) }, neverAborted);

checks("the id of an abandoned creation is free, once its leftovers are removed", async () => {
  await using machine = await openMachine();
  const { backend, directory } = machine;
  await beginCreation(directory, "own", creationId);
  await launched(machine);
  await endCreation(directory, "abandoned");
  const next = await machine.plan();
  expect((await failureOf(claimOf(next, machine, "f".repeat(16)))).id).toBe("cluster-exists");
  expect(machine.world.engine.networks).toHaveLength(1);
  await backend.remove((await backend.find("own", neverAborted))!, neverAborted);
  await claimOf(next, machine, "f".repeat(16));
  expect(statuses(machine)).toEqual(["created"]);
});

checks(
  "of two clusters of one id, the one with nodes is found, even if it has only one",
  async () => {
    await using machine = await openMachine();
    const { backend, world } = machine;
    const creation = await machine.plan();
    const empty = "0".repeat(16);
    const labels = [`${labelNames.clusterId}=own`, `${labelNames.creationId}=${empty}`].map(
      (text) => `--label=${text}`,
    );
    await world.engine.run(
      ["network", "create", ...labels, `cluster-e2e-own-${empty}`],
      new Uint8Array(),
    );
    expect(await backend.find("own", neverAborted)).toMatchObject({ creationId: empty, nodes: [] });
    await creation.claim({ creationId, directory: machine.directory }, neverAborted);
    expect((await backend.list(neverAborted)).map((cluster) => cluster.creationId)).toEqual([
      empty,
      creationId,
    ]);
    expect(await backend.find("own", neverAborted)).toMatchObject({
      creationId,
      nodes: [{ role: "master" }],
    });
  },
);

checks(
  "a cluster that can't be removed is left findable, and the error says what is left",
  async () => {
    await using machine = await openMachine();
    await launched(machine);
    const { backend, world, root } = machine;
    const cluster = (await backend.find("own", neverAborted))!;
    {
      await using _ = world.strike({
        call: "rm",
        when: "before",
        answer: "device or resource busy",
      });
      const failure = await failureOf(backend.remove(cluster, neverAborted));
      expect(failure).toMatchObject({ id: "engine-failed", hint: "Try again." });
      expect(failure.message).toMatch(
        /^Left behind: container .*, container .* \(.*device or resource busy.*\)\.$/,
      );
      expect(world.engine.networks).toHaveLength(1);
    }
    expect(dirname(cluster.directory)).toBe(root);
    await backend.remove(cluster, neverAborted);
    expect([statuses(machine), world.engine.networks]).toEqual([[], []]);
  },
);

checks("the console output of each node has the node's name", async () => {
  await using machine = await openMachine();
  const creation = await launched(machine);
  await using _ = machine.world.strike({
    call: "logs",
    when: "before",
    answer: printed("it boots\n"),
  });
  const outputs = await machine.backend.consoleOutput(
    await creation.look(neverAborted),
    neverAborted,
  );
  expect(outputs.map(({ name, text }) => `${name}: ${text}`).toSorted()).toEqual([
    "agent_0.console.txt: it boots",
    "master_0.console.txt: it boots",
  ]);
});

/** Makes a network and a container with the labels of a cluster, as anyone who may use the engine can. */
async function imitate({ world }: Machine, creation: string, index: number): Promise<void> {
  const labels = {
    clusterId: "own",
    creationId: creation,
    role: "master",
    index: String(index),
    reach: "direct",
  };
  const words = labelArguments(labels);
  const network = networkName(labels);
  await world.engine.run(["network", "create", ...words, network], new Uint8Array());
  const name = containerName("own", { role: "master", index });
  await world.engine.run(
    ["create", ...words, `--network=${network}`, `--name=${name}`],
    new Uint8Array(),
  );
}

// Shows R134.
test("of two clusters with one id, the one whose key is on this computer is meant", async () => {
  await using machine = await openMachine();
  await imitate(machine, "fedcba9876543210", 5);
  await imitate(machine, creationId, 0);
  await beginCreation(machine.directory, "own", creationId);
  await writeFile(creationFiles(machine.directory).privateKey, "");
  await endCreation(machine.directory, "finished");
  expect((await machine.backend.find("own", neverAborted))?.creationId).toBe(creationId);
});
