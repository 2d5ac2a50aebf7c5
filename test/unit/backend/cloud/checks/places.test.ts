/** What a region may lack that no local cloud lacks. */
import { expect, test } from "bun:test";
import type { Subnet } from "@aws-sdk/client-ec2";
import type { CloudFacts } from "../../../../../src/backend/cloud/checks/facts.ts";
import { launchChecks } from "../../../../../src/backend/cloud/checks/permissions.ts";
import { outcomeText } from "../../../../support/outcome-text.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";

const defaults = { region: "us-west-2", distribution: "centos-7", instanceType: "m5.large" };
const unasked = (): Promise<never> => Promise.reject(new Error("nobody should ask this"));

async function told(
  name: string,
  subnets: readonly Subnet[],
  zones: readonly string[],
): Promise<string> {
  const facts: CloudFacts = {
    api: unasked,
    inTime: unasked,
    defaultGroups: () => Promise.resolve([]),
    instances: unasked,
    groups: unasked,
    subnets: () => Promise.resolve(subnets),
    image: unasked,
    instanceType: unasked,
    zones: () => Promise.resolve(zones),
    address: unasked,
  };
  const check = launchChecks(facts, defaults).find((one) => one.name === name);
  if (check === undefined) throw new Error(`no such check: ${name}`);
  return outcomeText(await check.run(neverAborted));
}

const subnet = (zone: string, isPublic: boolean): Subnet => ({
  SubnetId: `subnet-${zone}`,
  VpcId: "vpc-1",
  AvailabilityZone: zone,
  MapPublicIpOnLaunch: isPublic,
});

test("one subnet that gives public addresses is enough", async () => {
  const text = await told("network", [subnet("a", false), subnet("b", true)], []);
  expect(text).toBe("pass: vpc-1 with 2 subnets, of which 1 assigns public addresses");
});

test("subnets without public addresses are worth a look", async () => {
  expect(await told("network", [subnet("a", false)], [])).toMatch(
    /^warn: No subnet of.*`subnetId`/,
  );
});

test("an instance type that is offered only where the network has no subnet is no use", async () => {
  const text = await told("instance type", [subnet("a", true)], ["b", "c"]);
  expect(text).toStartWith(
    "fail: m5.large is offered in b, c, where the default network has no subnet.",
  );
});

test("without any network the type is judged by itself", async () => {
  expect(await told("instance type", [], ["b"])).toBe("pass: m5.large is offered in b");
});
