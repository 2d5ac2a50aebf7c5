/** What `./scripts/demo ec2` asks EC2, asks the local cloud here: it answers, the differences are found, and nothing is left. */
import { expect, test } from "bun:test";
import { observe } from "../../../scripts/demo-ec2/observe.ts";
import { removeAll } from "../../../scripts/demo-ec2/remove-all.ts";
import { problemsOf, reportText } from "../../../scripts/demo-ec2/report.ts";
import { openApi } from "../../../src/backend/cloud/api/open-api.ts";
import { silentProgress, systemClock } from "../../../src/system/runtime.ts";
import { RunInstancesCommand } from "@aws-sdk/client-ec2";
import type { LocalCloud } from "../../local-cloud/local-cloud.ts";
import { debianImage, launchOf, startCloud } from "../../local-cloud/support/sdk.ts";
import { neverAborted } from "../../support/never-aborted.ts";

const mark = "demo-00000000-probe";

async function open(cloud: LocalCloud, changes: Readonly<Record<string, string>> = {}) {
  const environment = { ...cloud.environment, AWS_EC2_METADATA_DISABLED: "true", ...changes };
  const runtime = { environment, clock: systemClock, progress: silentProgress };
  return (await openApi(cloud.region, runtime, neverAborted))(cloud.region);
}

async function observed(cloud: LocalCloud) {
  const strangers = () => open(cloud, { CLOUD_ACCESS_KEY_ID: "AKIAIOSFODNN7EXAMPLE" });
  return await observe({ api: await open(cloud), strangers, mark }, neverAborted);
}

const ended = ({ state }: { readonly state: string }): boolean => state === "terminated";
const ownGroups = (cloud: LocalCloud) => cloud.groups().filter(({ groupName }) => groupName !== "default");
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
}, 60_000);

test("a cloud that answers otherwise is reported question by question", async () => {
  await using first = await startCloud({ behaviour: { deniedActions: ["GetConsoleOutput"] } });
  await using second = await startCloud({});
  const observations = await Promise.all([observed(first.cloud), observed(second.cloud)]);
  const report = { ...usual, observations, left: ["sg-1"] };
  expect(problemsOf(report)).toEqual([
    "Differs: the console of an unknown instance: UnauthorizedOperation, not InvalidInstanceID.NotFound",
    "Left: sg-1",
  ]);
  expect(reportText(report)).toContain("| UnauthorizedOperation | InvalidInstanceID.NotFound | **no** |");
}, 60_000);

test("the removal ends instances and deletes groups by their tags, and leaves others alone", async () => {
  await using started = await startCloud({ behaviour: { shuttingDownMs: 500 } });
  const { cloud, client } = started;
  const api = await open(cloud);
  const tags = (value: string) => [{ Key: "cluster-e2e:cluster-id", Value: value }];
  const grouped = async (value: string) =>
    api.call(
      "CreateSecurityGroup",
      {
        GroupName: value,
        Description: value,
        TagSpecifications: [{ ResourceType: "security-group", Tags: tags(value) }],
      },
      neverAborted,
    );
  const image = await debianImage(client);
  for (const value of [mark, "another"]) {
    const { GroupId = "" } = await grouped(value);
    const TagSpecifications = [{ ResourceType: "instance" as const, Tags: tags(value) }];
    await client.send(new RunInstancesCommand(launchOf(image, { SecurityGroupIds: [GroupId], TagSpecifications })));
  }
  await Bun.sleep(100);
  expect(await removeAll(api, [mark, "demo-00000000"], { isSure: true })).toEqual([]);
  expect(cloud.instances().map(ended)).toEqual([true, false]);
  expect(ownGroups(cloud).map(({ groupName }) => groupName)).toEqual(["another"]);
}, 60_000);
