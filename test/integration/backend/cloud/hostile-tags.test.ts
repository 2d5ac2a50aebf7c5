/** Creation, roll-back and library in an account with forged or changed tags. */
import { expect, test } from "bun:test";
import { mkdir, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { openApi } from "../../../../src/backend/cloud/api/open-api.ts";
import { toTags } from "../../../../src/backend/cloud/tags.ts";
import { Cluster } from "../../../../src/library/cluster.ts";
import { stateFolder } from "../../../../src/store/state-folder.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { type CloudFixture, leftIn, openFixture, region } from "../../../support/cloud-fixture.ts";
import { until } from "../../../support/until.ts";
import { neverAborted } from "../../../support/never-aborted.ts";

const oneNode = { counts: { master: 1, agent: 0, public_agent: 0 } } as const;
const hourMs = 3_600_000;

const tagsOf = (changed: object) => ({
  clusterId: "default",
  creationId: "0123456789abcdef",
  role: "master",
  indexBase: "0",
  variant: "oss",
  sshUser: "admin",
  expiresAt: new Date(Date.now() - hourMs).toISOString(),
  ...changed,
});

/** An instance outside the security groups of clusters. */
async function launch(fixture: CloudFixture, changed: object): Promise<string> {
  const api = (await openApi({ ...fixture.runtime, signal: neverAborted }, region))(region);
  const { Images = [] } = await api.call(
    "DescribeImages",
    { IncludeDeprecated: true },
    neverAborted,
  );
  const request = {
    ImageId: Images.find(({ Name = "" }) => Name.startsWith("debian-12-amd64"))!.ImageId,
    InstanceType: "m5.large" as const,
    MinCount: 1,
    MaxCount: 1,
    TagSpecifications: [
      { ResourceType: "instance" as const, Tags: toTags("x", tagsOf(changed), []) },
    ],
  };
  const { Instances = [] } = await api.call("RunInstances", request, neverAborted);
  const id = Instances[0]!.InstanceId!;
  // By then its tags are visible too.
  await until("it runs", () => stateOf(fixture, id) === "running");
  return id;
}

const stateOf = ({ cloud }: CloudFixture, id: string): string | undefined =>
  cloud.instances().find(({ instanceId }) => instanceId === id)?.state;

// Shows R133.
test.each([
  ["with a broken tag, which would be past its deadline", { creationId: "x/../../../.ssh" }],
  ["with all tags, past its deadline, but outside of the cluster's security group", {}],
])("an instance %s neither blocks an id nor is terminated", async (_, changed) => {
  await using fixture = await openFixture({});
  const foreign = await launch(fixture, changed);
  const backend = await fixture.open(region);
  const request = fixture.request("default", oneNode);
  await backend.plan(request, neverAborted);
  const cluster = await fixture.create(backend, request, neverAborted);
  expect(cluster.nodes.map(({ id }) => id)).not.toContain(foreign);
  expect(stateOf(fixture, foreign)).toBe("running");
  await backend.remove(cluster, neverAborted);
  expect(stateOf(fixture, foreign)).toBe("running");
  expect(leftIn(fixture.cloud)).toEqual({ machines: 1, groups: 0 });
});

test("an instance with broken tags and a copied creation id is not terminated with that creation", async () => {
  await using fixture = await openFixture({});
  const backend = await fixture.open(region);
  const request = fixture.request("default", oneNode);
  const cluster = await fixture.create(backend, request, neverAborted);
  const foreign = await launch(fixture, { creationId: cluster.creationId, sshUser: "a b" });
  expect((await backend.find("default", neverAborted))?.nodes.length).toBe(1);
  expect(fixture.told.join("\n")).toContain(
    `instance ${foreign}: its tag cluster-e2e:ssh-user is malformed`,
  );
  await backend.remove(cluster, neverAborted);
  expect(stateOf(fixture, foreign)).toBe("running");
});

// Shows R133.
test("the roll-back terminates this creation's instances, even if their tags have changed", async () => {
  await using fixture = await openFixture({});
  const backend = await fixture.open(region);
  const request = fixture.request("default", {
    counts: { master: 1, agent: 1, public_agent: 0 },
    complete: async () => {
      const [first, second] = fixture.cloud.instances();
      await fixture.tag(first!.instanceId, { "cluster-e2e:creation-id": "x/../../.ssh" });
      await fixture.tag(second!.instanceId, { "cluster-e2e:cluster-id": "someone-elses" });
      throw new Error("the creation fails");
    },
  });
  expect((await failureOf(fixture.create(backend, request, neverAborted))).message).toBe(
    "the creation fails",
  );
  expect(leftIn(fixture.cloud)).toEqual({ machines: 0, groups: 0 });
  // Their ids find them. Instances that only tags find would count as invisible for two minutes, past this test's limit.
});

test("the library ignores an instance with a broken tag, and changes no folder", async () => {
  await using fixture = await openFixture({});
  const { runtime } = fixture;
  const victim = join(stateFolder(runtime.environment), ".ssh");
  await mkdir(victim, { recursive: true, mode: 0o755 });
  await launch(fixture, {
    creationId: "x/../../../.ssh",
    expiresAt: new Date(Date.now() + hourMs).toISOString(),
  });
  const settings = () => ({ runtime, options: {} });
  const clusters = { distribution: "debian-12", settings, open: async () => fixture.open(region) };
  const error = await failureOf(Cluster.find(clusters, "default"));
  expect(error.id).toBe("cluster-not-found");
  expect((await stat(victim)).mode & 0o777).toBe(0o755);
  expect(await readdir(victim)).toEqual([]);
});
