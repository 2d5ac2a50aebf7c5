import { expect, test } from "bun:test";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import {
  parseLaunch,
  readLaunches,
  readOwnLaunches,
  saveLaunch,
} from "../../../../../src/backend/cloud/launch/saved-requests.ts";
import { toTags } from "../../../../../src/backend/cloud/tags.ts";
import { beginCreation, endCreation } from "../../../../../src/store/creation-folder.ts";
import { hostileTexts } from "../../../../support/hostile-text.ts";
import { scratchFolder } from "../../../../support/scratch-folder.ts";

const where = { name: "master-0", directory: "/state/cloud/us-west-2/default-0123456789abcdef" };
const tagsOf = (changed: object = {}) =>
  toTags(
    "x",
    {
      clusterId: "default",
      creationId: "0123456789abcdef",
      expiresAt: "2026-01-01T00:00:00Z",
      ...changed,
    },
    [],
  );
const request = {
  ClientToken: "01234567-89ab-cdef-0123-456789abcdef",
  ImageId: "ami-0123456789abcdef0",
  MinCount: 1,
  MaxCount: 1,
  TagSpecifications: [{ ResourceType: "instance", Tags: tagsOf() }],
};
const saved = { schemaVersion: 1, name: "master-0", request, machineIds: ["i-0123456789abcdef0"] };

test("a saved launch is read back, with and without an outcome", () => {
  expect(parseLaunch(JSON.parse(JSON.stringify(saved)), where)).toEqual({
    name: "master-0",
    request: request as never,
    machineIds: ["i-0123456789abcdef0"],
  });
  const { machineIds: _, ...unknown } = saved;
  expect(parseLaunch(unknown, where)?.machineIds).toBeUndefined();
  expect(parseLaunch(unknown, where)).toBeDefined();
});

// Shows R135.
test("what an interrupted creation saved is read again, and a damaged file is named", async () => {
  await using folder = await scratchFolder();
  const directory = join(folder.path, "default-0123456789abcdef");
  const launch = {
    name: "master-0",
    request: request as never,
    machineIds: ["i-0123456789abcdef0"],
  };
  await saveLaunch(directory, launch);
  await writeFile(join(directory, "launches", "agent-0.json"), "{");
  expect(await readLaunches(directory)).toEqual({ launches: [launch], unreadable: ["agent-0"] });
});

test("a creation's own launches are known once it is finished, and only if all of them are", async () => {
  await using folder = await scratchFolder();
  const directory = join(folder.path, "default-0123456789abcdef");
  const known = async () => readOwnLaunches({ directory });
  const launchOf = (name: string, group: string, machineIds?: readonly string[]) => ({
    name,
    request: { ...request, NetworkInterfaces: [{ Groups: [group] }] } as never,
    machineIds,
  });
  await beginCreation(directory, "default", "0123456789abcdef");
  const master = launchOf("master-0", "sg-00000001", ["i-0123456789abcdef0"]);
  await saveLaunch(directory, master);
  expect(await known()).toBeUndefined();
  await endCreation(directory, "finished");
  expect(await known()).toEqual({
    machineIds: new Set(master.machineIds),
    groupIds: new Set(["sg-00000001"]),
  });
  await saveLaunch(directory, launchOf("agent-0", "sg-00000001"));
  expect(await known()).toBeUndefined();
  await writeFile(join(directory, "launches", "agent-0.json"), "{");
  expect(await known()).toBeUndefined();
  await saveLaunch(directory, launchOf("agent-0", "sg-00000001", []));
  expect((await known())!.machineIds).toEqual(new Set(master.machineIds));
  await saveLaunch(directory, launchOf("master-0", "sg-00000001", []));
  expect(await known()).toBeUndefined();
});

test("the launch of another creation is not sent again", () => {
  for (const changed of [
    { creationId: "fedcba9876543210" },
    { clusterId: "other" },
    { expiresAt: "never" },
  ]) {
    const other = {
      ...request,
      TagSpecifications: [{ ResourceType: "instance", Tags: tagsOf(changed) }],
    };
    expect(parseLaunch({ ...saved, request: other }, where)).toBeUndefined();
  }
});

test("a launch with a tag of another shape is none", () => {
  for (const tag of [null, [], { Key: "a" }, { Value: "a" }, { Key: 1, Value: "a" }]) {
    const other = {
      ...request,
      TagSpecifications: [{ ResourceType: "instance", Tags: [...tagsOf(), tag] }],
    };
    expect(parseLaunch({ ...saved, request: other }, where)).toBeUndefined();
  }
});

// Shows R135.
test("a saved launch in which anything that is read has another shape is none", () => {
  for (const found of [...hostileTexts(31, 2000), undefined, null, {}, [], [null], [{}], -1.5]) {
    for (const key of ["schemaVersion", "name", "request"])
      expect(parseLaunch({ ...saved, [key]: found }, where)).toBeUndefined();
    for (const key of Object.keys(request))
      expect(
        parseLaunch({ ...saved, request: { ...request, [key]: found } }, where),
      ).toBeUndefined();
    expect(parseLaunch(found, where)).toBeUndefined();
    expect(parseLaunch({ ...saved, machineIds: [found] }, where)).toBeUndefined();
  }
});
