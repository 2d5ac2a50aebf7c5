/** What doctor finds on a scripted engine; see scripted-machine.ts. */
import { rm, writeFile } from "node:fs/promises";
import { expect } from "bun:test";
import { containerChecks } from "../../../../src/backend/container/checks.ts";
import { labelNames, nodeVolumeLabel } from "../../../../src/backend/container/records/labels.ts";
import {
  beginCreation,
  creationFiles,
  endCreation,
} from "../../../../src/store/creation-folder.ts";
import { systemClock } from "../../../../src/system/runtime.ts";
import { outcomeText } from "../../../support/outcome-text.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { checks, creationId, launched, openMachine, printed } from "./scripted-machine.ts";

checks(
  "doctor reports what interrupted creates and lost clusters left, with the commands that remove it",
  async () => {
    await using machine = await openMachine();
    const { world, directory, progress } = machine;
    await beginCreation(directory, "own", creationId);
    await launched(machine);
    for (const { id } of world.engine.containers) await world.engine.kill(id);
    const orphan = describeSnapshot("fedcba9876543210", "master");
    const torn = describeSnapshot(creationId, "agent");
    const ids = [orphan, torn].map(({ Id }) => `${Id}\n`).join("");
    const [lost, own] = [describeVolume("fedcba9876543210", "a"), describeVolume(creationId, "b")];
    await using _ = world.strike(
      { call: "volume ls", when: "before", answer: printed(`${lost.Name}\n${own.Name}\n`) },
      { call: "volume inspect", when: "before", answer: printed(JSON.stringify([lost, own])) },
      { call: "images", when: "before", answer: printed(ids) },
      { call: "image inspect", when: "before", answer: printed(JSON.stringify([orphan, torn])) },
    );
    const runtime = { environment: world.environment, clock: systemClock, progress };
    const check = containerChecks({ ...runtime, signal: neverAborted }, "docker").find(
      ({ name }) => name === "leftovers",
    )!;
    const told = outcomeText(await check.run(neverAborted));
    expect(told).toContain('The snapshot "installed" of cluster "own" has outlived it.');
    expect(told).toContain(`docker image rm ${orphan.RepoTags[0]}`);
    expect(told).toContain('The snapshot "installed" of cluster "own" is incomplete.');
    expect(told).toContain("1 volume of nodes that are gone.");
    expect(told).toContain(`docker volume rm ${lost.Name}`);
    expect(told).not.toContain(own.Name);
    expect(told).toMatch(
      /cluster-container snapshot --cluster-id own (?:--engine docker )?delete installed/,
    );
  },
);

checks(
  "a cluster that has nothing left but a whole snapshot is found where its key is",
  async () => {
    await using machine = await openMachine();
    const { backend, world, directory, told } = machine;
    await beginCreation(directory, "own", creationId);
    await writeFile(creationFiles(directory).privateKey, "");
    await endCreation(directory, "finished");
    const images = ["master", "agent"].map((role) => describeSnapshot(creationId, role));
    const finding = async (found: typeof images) => {
      const ids = found.map(({ Id }) => `${Id}\n`).join("");
      await using _ = world.strike(
        { call: "images", when: "before", answer: printed(ids) },
        { call: "image inspect", when: "before", answer: printed(JSON.stringify(found)) },
      );
      return await backend.find("own", neverAborted);
    };
    expect(await finding(images)).toMatchObject({
      creationId,
      state: "incomplete",
      requested: { master: 1, agent: 1, public_agent: 0 },
      nodes: [],
    });
    expect(told).toContainEqual(expect.stringContaining("snapshots: installed."));
    expect(await finding(images.slice(1))).toBeUndefined();
    await rm(creationFiles(directory).privateKey);
    expect(await finding(images)).toBeUndefined();
  },
);

/** A volume of a node. */
const describeVolume = (creation: string, digit: string) => ({
  Name: digit.repeat(64),
  Labels: { [nodeVolumeLabel]: creation },
});

/** The image of one node, of a cluster of two. */
const describeSnapshot = (creation: string, role: string) => ({
  Id: (role === "master" ? "1" : "2").repeat(64),
  RepoTags: [`localhost/cluster-e2e-snapshot:${creation}-installed-${role}_0`],
  Created: "2026-01-01T00:00:00Z",
  Config: {
    Labels: {
      [labelNames.clusterId]: "own",
      [labelNames.creationId]: creation,
      [labelNames.counts]: "master=1 agent=1 public_agent=0",
      [labelNames.snapshot]: "installed",
      [labelNames.role]: role,
      [labelNames.index]: "0",
      [labelNames.address]: "172.18.0.2",
      [labelNames.range]: "172.18.0.0/16",
      [labelNames.settings]: JSON.stringify({ volumes: [] }),
    },
  },
});
