import { expect, test } from "bun:test";
import { type CloudPlan, newRequestedResources } from "../../../../src/backend/cloud/plan.ts";
import {
  type LabelValues,
  labelArguments,
} from "../../../../src/backend/container/records/labels.ts";
import { assertReadable, readTexts } from "../../../../src/backend/shared/foreign-resource.ts";
import {
  type ClusterFacts,
  readCluster,
  writeClusterFacts,
} from "../../../../src/backend/vm/cluster-facts.ts";
import { creationDirectory } from "../../../../src/store/creation-folder.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

const creationId = "0123456789abcdef";
const counts = { master: 1, agent: 1, public_agent: 0 };
const given = {
  clusterId: "mine",
  creationId,
  counts: "master=1 agent=1 public_agent=0",
  variant: "oss",
  distribution: "debian-12",
  createdBy: "2026.11.23.1",
};

/** Values that no command reads back: whoever creates such a cluster can neither list nor remove it. */
const unreadable = [
  { clusterId: "not one" },
  { creationId: ".." },
  { counts: "master=1" },
  { variant: undefined },
  { variant: "OSS" },
  { distribution: "Debian 12" },
  { distribution: `image ${"a".repeat(600)}` },
] as const;

test("what every command reads may be written", () => {
  expect(() =>
    assertReadable({ ...given, role: "public_agent", index: "999", webUi: "https" }),
  ).not.toThrow();
});

test.each(unreadable)(
  "a creation that would write %j is refused before any request",
  async (change) => {
    const values = { ...given, ...change } as LabelValues;
    expect(() => labelArguments(values)).toThrow("No command could read this creation");
  },
);

test.each([
  { clusterId: "not one" },
  { variant: undefined },
  { counts: { ...counts, agent: 0.5 } },
  { distribution: "Debian 12" },
])("a cloud creation that would write %j is refused before any request", (change) => {
  const plan = {
    api: { now: () => 0 },
    request: {
      clusterId: "mine",
      counts,
      variant: "oss",
      distribution: "debian-12",
      options: {},
      ...change,
    },
    resolved: { image: { user: "admin" } },
  } as unknown as CloudPlan;
  const folder = { creationId, directory: "/nowhere" };
  expect(() => newRequestedResources(plan, { folder, vpcId: "vpc-1" })).toThrow(
    "No command could read this creation",
  );
});

test.each([
  { variant: undefined },
  { counts: { master: 1 } },
  { distribution: "Debian 12" },
  { clusterId: "other" },
])("facts of virtual machines with %j are not written", async (change) => {
  await using scratch = await scratchFolder();
  const directory = creationDirectory(scratch.path, "mine", creationId);
  const known = {
    clusterId: "mine",
    creationId,
    variant: "oss",
    distribution: "debian-12",
    counts,
  } as const;
  const facts: ClusterFacts = {
    schemaVersion: 1,
    ...known,
    createdAt: undefined,
    createdBy: "1",
    nodes: [],
  };
  const failure = await failureOf(
    writeClusterFacts(directory, { ...facts, ...change } as unknown as ClusterFacts),
  );
  expect(failure.message).toContain("No command could read this creation");
  expect(await readCluster(directory)).toBeUndefined();
});

test("a machine's texts are read if all are well-formed, and the faulty ones are named otherwise", () => {
  const names = { clusterId: "e2e:id", variant: "e2e:variant", webUi: "e2e:web" };
  const read = (texts: Readonly<Record<string, string>>) =>
    readTexts(
      { kind: "tag", names, texts },
      { required: ["clusterId", "variant"], optional: ["webUi"] },
    );
  expect(read({ clusterId: "mine", variant: "oss" })).toEqual({
    clusterId: "mine",
    variant: "oss",
    webUi: undefined,
  });
  expect(read({ clusterId: "mine", variant: "oss", webUi: "https" })).toMatchObject({
    webUi: "https",
  });
  expect(read({ clusterId: "not one", webUi: "ftp" })).toBe(
    "its tag e2e:id is malformed, its tag e2e:variant is missing, its tag e2e:web is malformed",
  );
});
