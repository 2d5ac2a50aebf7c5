/** How a cluster is removed, also one whose creation was cut off and left its requests in its folder. */

import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { saveLaunch } from "../../../../src/backend/cloud/launch/saved-requests.ts";
import { removeCluster } from "../../../../src/backend/cloud/removal.ts";
import { toTags } from "../../../../src/backend/cloud/tags.ts";
import {
  beginCreation,
  creationDirectory,
  endCreation,
} from "../../../../src/store/creation-folder.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import { scriptedCloud } from "../../../support/scripted-cloud.ts";

const creation = { clusterId: "default", creationId: "0123456789abcdef" };
const id = "i-00000000000000001";
const token = "01234567-89ab-cdef-0123-456789abcdef";
const machine = { id, tags: { ...creation, role: "agent", variant: "oss", sshUser: "admin" } };

async function openFolder(
  root: string,
  state: "finished" | "abandoned",
  expiresAt: string,
  machineIds?: readonly string[],
): Promise<string> {
  const directory = creationDirectory(root, creation.clusterId, creation.creationId);
  await beginCreation(directory, creation.clusterId, creation.creationId);
  await endCreation(directory, state);
  const Tags = toTags("x", { ...creation, expiresAt }, []);
  const TagSpecifications = [{ ResourceType: "instance" as const, Tags }];
  const request = {
    ClientToken: token,
    ImageId: "ami-00000001",
    MinCount: 1,
    MaxCount: 1,
    TagSpecifications,
  };
  await saveLaunch(directory, { name: "agent-0", request, machineIds });
  return directory;
}

const cluster = (directory: string) => ({
  id: creation.clusterId,
  creationId: creation.creationId,
  directory,
});

test.each([
  ["cut off, with time left, is repeated", "abandoned", "2026-01-01T00:00:01Z", true],
  [
    "cut off, past its deadline, is not, since it would launch new machines",
    "abandoned",
    "2026-01-01T00:00:00Z",
    false,
  ],
  ["completed is not", "finished", "2026-01-01T01:00:00Z", false],
] as const)("the launch of a creation that was %s", async (_, state, expiresAt, isRepeated) => {
  await using folder = await scratchFolder();
  const directory = await openFolder(folder.path, state, expiresAt);
  const cloud = scriptedCloud([{ ...machine, tags: {}, token }], []);
  await removeCluster({ ...cloud.runtime, signal: neverAborted }, cloud.api, cluster(directory));
  expect(cloud.machinesLeft()).toEqual(isRepeated ? [] : [id]);
  expect(cloud.changes()).toEqual(isRepeated ? ["RunInstances", "TerminateInstances"] : []);
  expect(cloud.told).toEqual([]);
});

test.each([
  ["ahead", "2025-12-31T23:00:00Z", 3, true],
  ["behind", "2026-01-01T01:00:00Z", -3, false],
])(
  "a clock that is hours %s does not decide whether it is repeated",
  async (_, expiresAt, hours, isRepeated) => {
    await using folder = await scratchFolder();
    const directory = await openFolder(folder.path, "abandoned", expiresAt);
    const cloud = scriptedCloud([{ ...machine, tags: {}, token }], []);
    const now = () => cloud.runtime.clock.now() - hours * 3_600_000;
    await removeCluster(
      { ...cloud.runtime, signal: neverAborted },
      { ...cloud.api, now },
      cluster(directory),
    );
    expect(cloud.machinesLeft()).toEqual(isRepeated ? [] : [id]);
  },
);

test("the machines of a cluster that was created here are terminated whatever their tags say", async () => {
  await using folder = await scratchFolder();
  const directory = await openFolder(folder.path, "finished", "2026-01-01T01:00:00Z", [id]);
  const cloud = scriptedCloud([{ ...machine, tags: {} }], []);
  await removeCluster({ ...cloud.runtime, signal: neverAborted }, cloud.api, cluster(directory));
  expect(cloud.machinesLeft()).toEqual([]);
});

const secondId = "i-00000000000000002";

test("a machine that ended so long ago that the API has forgotten it does not keep the others alive", async () => {
  await using folder = await scratchFolder();
  const directory = await openFolder(folder.path, "abandoned", "2026-01-01T00:50:00Z", [
    secondId,
    id,
  ]);
  const cloud = scriptedCloud([{ ...machine, tags: {} }], []);
  await removeCluster({ ...cloud.runtime, signal: neverAborted }, cloud.api, cluster(directory));
  expect(cloud.machinesLeft()).toEqual([]);
  expect(cloud.elapsedMs()).toBeLessThan(2000);
});

test("a machine that was launched a moment ago, and that the API does not show yet, is terminated once it does", async () => {
  await using folder = await scratchFolder();
  const directory = await openFolder(folder.path, "abandoned", "2026-01-01T01:59:00Z", [id]);
  const cloud = scriptedCloud([{ ...machine, tags: {}, visibleAtMs: 90_000 }], []);
  await removeCluster({ ...cloud.runtime, signal: neverAborted }, cloud.api, cluster(directory));
  expect([cloud.machinesLeft(), cloud.elapsedMs()]).toEqual([[], 90_000]);
});

test("launch records that cannot be read are named, and tags find the machines", async () => {
  await using folder = await scratchFolder();
  const directory = await openFolder(folder.path, "abandoned", "2026-01-01T01:00:00Z");
  await mkdir(join(directory, "launches"), { recursive: true });
  await writeFile(join(directory, "launches", "agent-0.json"), "");
  const cloud = scriptedCloud([machine], []);
  await removeCluster({ ...cloud.runtime, signal: neverAborted }, cloud.api, cluster(directory));
  expect(cloud.machinesLeft()).toEqual([]);
  expect(cloud.told).toEqual([`1: Cannot read the launch records in ${directory}.`]);
});

test.each([
  ["at the time that the launch had set", "abandoned", "at 01:00 UTC (in 54 min)"],
  ["at their deadline", "finished", "at their deadline"],
] as const)(
  "machines that do not end are an error, which says that they end %s",
  async (_, state, end) => {
    await using folder = await scratchFolder();
    const directory = await openFolder(folder.path, state, "2026-01-01T01:00:00Z");
    const cloud = scriptedCloud([{ ...machine, token, endingMs: Infinity }], []);
    expect(
      await failureOf(
        removeCluster({ ...cloud.runtime, signal: neverAborted }, cloud.api, cluster(directory)),
      ),
    ).toMatchObject({
      id: "cloud-failed",
      message: `Left behind: machines ${id}. Machines terminate automatically ${end}; the next create in the region removes the rest.`,
      facts: { machineIds: [id], groupIds: [] },
    });
  },
);
