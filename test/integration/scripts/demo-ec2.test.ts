/** What `./scripts/demo ec2` asks EC2, asks the local cloud here: it answers, the differences are found, and nothing is left. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { observe } from "../../../scripts/demo-ec2/observe.ts";
import { foundByTags, readRequested, removeAll } from "../../../scripts/demo-ec2/remove-all.ts";
import { problemsOf, reportText } from "../../../scripts/demo-ec2/report.ts";
import { openApi } from "../../../src/backend/cloud/api/open-api.ts";
import { systemClock } from "../../../src/system/runtime.ts";
import { silentProgress } from "../../support/silent-progress.ts";
import { RunInstancesCommand } from "@aws-sdk/client-ec2";
import type { LocalCloud } from "../../local-cloud/local-cloud.ts";
import { debianImage, launchOf, startCloud } from "../../local-cloud/support/sdk.ts";
import { openFixture, region } from "../../support/cloud-fixture.ts";
import { failureOf } from "../../support/failure-of.ts";
import { neverAborted } from "../../support/never-aborted.ts";

const mark = "demo-00000000-probe";

async function open(cloud: LocalCloud, changes: Readonly<Record<string, string>> = {}) {
  const environment = { ...cloud.environment, AWS_EC2_METADATA_DISABLED: "true", ...changes };
  const runtime = { environment, clock: systemClock, progress: silentProgress };
  return (await openApi({ ...runtime, signal: neverAborted }, cloud.region))(cloud.region);
}

async function observed(cloud: LocalCloud) {
  const strangers = () => open(cloud, { CLOUD_ACCESS_KEY_ID: "AKIAIOSFODNN7EXAMPLE" });
  return await observe(
    {
      api: await open(cloud),
      strangers,
      mark,
      requested: { clientTokens: new Set(), groupIds: new Set() },
    },
    neverAborted,
  );
}

const ended = ({ state }: { readonly state: string }): boolean => state === "terminated";
const ownGroups = (cloud: LocalCloud) =>
  cloud.groups().filter(({ groupName }) => groupName !== "default");
const usual = {
  region: "us-west-2",
  platform: "example:slurm",
  endpoint: undefined,
  ran: [],
  failure: undefined,
  left: [],
};

test("two clouds that behave alike have no differences, and nothing is left in them", async () => {
  await using first = await startCloud({});
  await using second = await startCloud({ behaviour: { pendingMs: 700, shuttingDownMs: 900 } });
  const observations = await Promise.all([observed(first.cloud), observed(second.cloud)]);
  expect(problemsOf({ ...usual, observations })).toEqual([]);
  const [{ answers, seconds }] = observations;
  expect(answers).toMatchObject({
    "an unknown access key": "AuthFailure",
    "a dry run of a launch": "DryRunOperation",
    "deleting a group in use": "DependencyViolation",
    "an instance's states": "pending, running, shutting-down, terminated",
  });
  expect(Object.keys(seconds)).toHaveLength(7);
  for (const { cloud } of [first, second]) {
    expect(cloud.instances().filter((each) => !ended(each))).toEqual([]);
    expect(ownGroups(cloud)).toEqual([]);
  }
});

test("a cloud that answers otherwise is reported question by question", async () => {
  await using first = await startCloud({ behaviour: { deniedActions: ["GetConsoleOutput"] } });
  await using second = await startCloud({});
  const observations = await Promise.all([observed(first.cloud), observed(second.cloud)]);
  const report = { ...usual, observations, left: ["sg-1"] };
  expect(problemsOf(report)).toEqual([
    "Differs: the console of an unknown instance: UnauthorizedOperation, not InvalidInstanceID.NotFound",
    "Left: sg-1",
  ]);
  expect(reportText(report)).toContain(
    "| UnauthorizedOperation | InvalidInstanceID.NotFound | **no** |",
  );
});

test("the removal ends what the run has requested, and only names what others have tagged like it", async () => {
  await using started = await startCloud({ behaviour: { shuttingDownMs: 500 } });
  const { cloud, client } = started;
  const api = await open(cloud);
  const Tags = [{ Key: "cluster-e2e:cluster-id", Value: mark }];
  const image = await debianImage(client);
  const launch = async (name: string, ClientToken: string) => {
    const TagSpecifications = [{ ResourceType: "security-group" as const, Tags }];
    const group = { GroupName: name, Description: name, TagSpecifications };
    const { GroupId = "" } = await api.call("CreateSecurityGroup", group, neverAborted);
    const changes = { ClientToken, SecurityGroupIds: [GroupId] };
    const tagged = { TagSpecifications: [{ ResourceType: "instance" as const, Tags }] };
    const { Instances } = await client.send(
      new RunInstancesCommand(launchOf(image, { ...changes, ...tagged })),
    );
    return [Instances![0]!.InstanceId!, GroupId] as const;
  };
  const [, ownGroup] = await launch(mark, "own");
  const foreign = await launch("cluster-e2e-demo", "another");
  await Bun.sleep(100);
  const requested = { clientTokens: new Set(["own"]), groupIds: new Set([ownGroup]) };
  expect(await removeAll(api, requested, { isSure: true })).toEqual([]);
  expect(cloud.instances().map(ended)).toEqual([true, false]);
  expect(ownGroups(cloud).map(({ groupName }) => groupName)).toEqual(["cluster-e2e-demo"]);
  const left = await foundByTags(api, [mark]);
  expect(left.map((line) => line.split(",")[0]!)).toEqual([...foreign]);
});

test("what cluster-cloud has requested is read from its state folder, and nothing is guessed", async () => {
  await using fixture = await openFixture({});
  const backend = await fixture.open(region);
  const counts = { master: 1, agent: 1, public_agent: 0 };
  await fixture.create(backend, fixture.request("default", { counts }), neverAborted);
  const state = fixture.runtime.environment["XDG_STATE_HOME"]!;
  const { clientTokens, groupIds } = await readRequested(state);
  expect([...clientTokens].toSorted()).toEqual(
    fixture.cloud
      .instances()
      .flatMap(({ clientToken }) => clientToken ?? [])
      .toSorted(),
  );
  expect([...groupIds]).toEqual(fixture.cloud.groups().map(({ groupId }) => groupId));
  for (const file of new Bun.Glob("**/launches/*.json").scanSync({ cwd: state }))
    await Bun.write(join(state, file), "{}");
  expect(await failureOf(readRequested(state))).toMatchObject({
    message: expect.stringContaining("cannot be read"),
  });
});
