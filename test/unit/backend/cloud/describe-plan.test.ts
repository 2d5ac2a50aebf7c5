/** What a creation shows before it creates anything, and the deadline that it sets. */

import { expect, test } from "bun:test";
import type { CloudOptions } from "../../../../src/backend/cloud/options.ts";
import {
  describePlan,
  newRequestedResources,
  resolveCreation,
} from "../../../../src/backend/cloud/plan.ts";
import type { CreationRequest } from "../../../../src/backend/contract.ts";
import { newRequest } from "../../../support/cloud-fixture.ts";
import { silentProgress } from "../../../support/silent-progress.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { scriptedCloud } from "../../../support/scripted-cloud.ts";

const resolved = {
  image: {
    id: "ami-1",
    name: "debian-12-amd64",
    user: "admin",
    rootDevice: "/dev/xvda",
    furtherDevices: [],
    traits: {},
    leastGigabytes: 8,
    knowsMetadata2: true,
  },
  subnets: [{ id: "subnet-1", vpcId: "vpc-1", zone: "us-west-2a" }],
  cidrs: ["192.0.2.7/32"],
};
const { api } = scriptedCloud([], []);
const options: CloudOptions = {
  instanceType: "m5.large",
  customTags: [{ key: "owner", value: "me" }],
  adminCidrs: [],
};
const request: CreationRequest<CloudOptions> = newRequest("default", {
  counts: { master: 1, agent: 2, public_agent: 0 },
  options,
});

test("a plan names everything that would be created, opened and paid for", () => {
  const { lines, facts } = describePlan(api, request, resolved);
  expect(lines).toEqual([
    ["Cluster", "default"],
    ["Region", "us-west-2"],
    ["Credentials", "a test"],
    ["Image", "ami-1 (debian-12-amd64), user admin"],
    ["Instance metadata", "version 2 only"],
    ["Machines", "3 × m5.large: 1 master, 2 agents, 0 public agents"],
    ["Subnets", "subnet-1 (us-west-2a)"],
    [
      "Security group",
      "cluster-e2e-default: TCP 22, 80, 443 from 192.0.2.7/32; any traffic between the nodes",
    ],
    ["Custom tags", "owner=me"],
    ["Cost", expect.stringContaining("about $0.72 (3 × m5.large for two hours")],
    ["Ends", "02:00 UTC (in 2 h), two hours after launch"],
  ]);
  expect(facts).toMatchObject({
    instanceMetadata: { version1: "closed" },
    rules: { ports: [22, 80, 443], adminCidrs: ["192.0.2.7/32"] },
    maximumCostDollars: 0.72,
    expiresAt: "2026-01-01T02:00:00.000Z",
  });
});

test("it says so if there are no tags, no known price, or an image that needs version 1 of the metadata", () => {
  const plain = {
    ...request,
    options: { ...options, instanceType: "x9.enormous", customTags: [] },
  };
  const image = { ...resolved.image, knowsMetadata2: false };
  const { lines, facts } = describePlan(api, plain, { ...resolved, image });
  expect(lines).toContainEqual(["Custom tags", "none"]);
  expect(lines).toContainEqual(["Cost", expect.stringContaining("price unknown")]);
  expect(lines).toContainEqual([
    "Instance metadata",
    expect.stringContaining("after the first login"),
  ]);
  expect(facts).toMatchObject({ instanceMetadata: { version1: "until-first-login" } });
  expect(facts).not.toHaveProperty("maximumCostDollars");
});

const folder = { creationId: "0123456789abcdef", directory: "/default-0123456789abcdef" };

test.each([
  [
    "a distribution, and no web UI that is known",
    {},
    { distribution: "debian-12", webUi: undefined },
  ],
  [
    "an own image, and a web UI",
    { webUi: "https", options: { ...options, image: { id: "ami-0123456789abcdef0", user: "me" } } },
    { distribution: "image ami-0123456789abcdef0", webUi: "https" },
  ],
] as const)("the tags name %s", (_, changes, tags) => {
  const given = { ...request, distribution: "debian-12", webUi: undefined, ...changes };
  const plan = { api, regionFolder: { region: "us-west-2", root: "/" }, request: given, resolved };
  const { group } = newRequestedResources(plan, { folder, vpcId: "vpc-1" });
  const { distribution, webUi } = group.tags;
  expect({ distribution, webUi }).toEqual(tags);
});

test.each([
  ["a distribution with cgroups 2", "debian-12", undefined, "machine-not-set-up"],
  ["a distribution with cgroups 1", "centos-7", undefined, undefined],
  ["an own image", "debian-12", { id: "ami-0123456789abcdef0", user: "me" }, undefined],
] as const)(
  "for a platform that requires cgroups 1, %s: %p",
  async (_, distribution, image, id) => {
    const answers = {
      Images: [{ ImageId: "ami-1" }],
      InstanceTypes: [{}],
      Subnets: [{ SubnetId: "subnet-1", State: "available" }],
    };
    const quick = { ...api, call: async () => answers as never };
    const chosen = { ...options, adminCidrs: ["192.0.2.7"], ...(image !== undefined && { image }) };
    const needs = { distribution, needsCgroups1: true, options: chosen };
    const resolving = resolveCreation(
      { environment: {}, progress: silentProgress, signal: neverAborted },
      quick,
      needs,
    );
    if (id === undefined) expect((await resolving).cidrs).toEqual(["192.0.2.7/32"]);
    else expect((await failureOf(resolving)).id).toBe(id);
  },
);

test("machines end two hours after the API's time, in whole seconds", () => {
  const late = { ...api, now: () => Date.parse("2026-01-01T00:00:00.999Z") };
  const plan = { api: late, regionFolder: { region: "us-west-2", root: "/" }, request, resolved };
  const made = newRequestedResources(plan, { folder, vpcId: "vpc-1" });
  expect(made.expiresAt.toISOString()).toBe("2026-01-01T02:00:00.000Z");
  expect(made.group.tags.expiresAt).toBe("2026-01-01T02:00:00.000Z");
});
