/** doctor's checks of the cloud: their requests, their time limit, and everything that create needs in a region. */
import { expect, test } from "bun:test";
import { freePort } from "../../../../support/free-port.ts";
import { shareDoctorFixture, untriedPermissions } from "./checks-fixture.ts";

const fixture = shareDoctorFixture();

test("if nothing is wrong, every check passes except for those that need an existing resource", async () => {
  const diagnosis = await fixture().diagnose({});
  expect(diagnosis.results.map(({ name, message }) => `${name}: ${message}`).join("\n"))
    .toMatchInlineSnapshot(`
    "credentials: Valid, from the variables CLOUD_ACCESS_KEY_ID, CLOUD_SECRET_ACCESS_KEY
    account: 111122223333
    region: us-west-2 can be used
    clock: Agrees with the cloud's
    ec2:DescribeInstances: Allowed
    ec2:DescribeSecurityGroups: Allowed
    ec2:DescribeImages: Allowed
    ec2:DescribeSubnets: Allowed
    ec2:DescribeRegions: Allowed
    ec2:DescribeInstanceTypes: Allowed
    ec2:DescribeInstanceTypeOfferings: Allowed
    ec2:CreateSecurityGroup: Allowed
    ec2:AuthorizeSecurityGroupIngress: Not tested: a dry run needs an existing security group.
    ec2:RunInstances: Allowed
    ec2:GetConsoleOutput: Not tested: a dry run needs an existing machine.
    ec2:ModifyInstanceMetadataOptions: Not tested: a dry run needs an existing machine.
    ec2:TerminateInstances: Not tested: a dry run needs an existing machine.
    ec2:DeleteSecurityGroup: Not tested: a dry run needs an existing security group.
    network: vpc-901dd025ca002aa73 with 4 subnets, of which 4 assign public addresses
    image: centos-7: ami-81289fba77376b588 (CentOS Linux 7 x86_64 - 2211); instance metadata: version 2 only, after the first login: the image may need version 1 to find its user data
    instance type: m5.large is offered in us-west-2a, us-west-2b, us-west-2c
    admin address: This computer's public address is 127.0.0.1
    leftovers: None"
  `);
  expect(diagnosis.names("skip")).toEqual(untriedPermissions);
  expect([...diagnosis.names("warn"), ...diagnosis.names("fail")]).toEqual([]);
});

test("each request is sent once, and nothing is changed", async () => {
  await fixture().diagnose({});
  const { requests } = fixture().cloud;
  expect(requests.counts()).toEqual({
    DescribeSecurityGroups: 2,
    DescribeInstances: 1,
    DescribeSubnets: 1,
    DescribeImages: 1,
    DescribeInstanceTypes: 1,
    DescribeInstanceTypeOfferings: 1,
    DescribeRegions: 1,
    CreateSecurityGroup: 1,
    RunInstances: 1,
  });
  const changing = requests.entries.filter(({ action }) => !action.startsWith("Describe"));
  expect(changing.map(({ parameters, outcome }) => [parameters["DryRun"], outcome])).toEqual([
    ["true", "DryRunOperation"],
    ["true", "DryRunOperation"],
  ]);
  expect([...fixture().cloud.instances(), ...fixture().cloud.groups()]).toEqual([]);
});

test("a request that hangs is given up at the time limit", async () => {
  fixture().cloud.behaviour.change({ apiDelayMs: 3_000 });
  const diagnosis = await fixture().diagnose({ limitMs: 400 });
  expect(diagnosis.told("image")).toStartWith(
    "fail: The check did not finish within 0.4 s. → Try again",
  );
});

test("an interrupt ends the checks at once", async () => {
  fixture().cloud.behaviour.change({ apiDelayMs: 3_000 });
  const ended = fixture().diagnose({ interruptedAfterMs: 100 });
  expect(await ended.catch((error: unknown) => error)).toHaveProperty("name", "TimeoutError");
});

test("a request that fails makes its own check fail, not the check of permissions", async () => {
  fixture().cloud.faults.add({
    action: "DescribeImages",
    when: "before",
    times: "always",
    code: "InvalidThing",
  });
  const diagnosis = await fixture().diagnose({});
  expect(diagnosis.told("image")).toMatch(/^fail: .*InvalidThing/);
  expect(diagnosis.told("ec2:DescribeImages")).toMatch(/^skip: Not known: .*InvalidThing/);
  expect(diagnosis.names("fail")).toEqual(["image"]);
});

test("brief throttling is retried by the SDK, and every check passes", async () => {
  fixture().cloud.faults.add({
    action: "DescribeSubnets",
    when: "before",
    times: 2,
    code: "RequestLimitExceeded",
  });
  expect((await fixture().diagnose({})).names("fail")).toEqual([]);
});

test("a region without a default network", async () => {
  const diagnosis = await fixture().diagnose({ defaults: { region: "sa-east-1" } });
  expect(diagnosis.told("network")).toMatch(
    /^fail: Region sa-east-1 has no default network.* → .*`subnetId`/,
  );
  expect(diagnosis.names("fail")).toEqual(["network"]);
});

test("a region without an image of the default distribution", async () => {
  const diagnosis = await fixture().diagnose({ defaults: { region: "ap-southeast-2" } });
  expect(diagnosis.told("image")).toMatch(
    /^fail: There is no image of centos-7.* → .*`linuxDistribution rocky-8 or almalinux-8`,/,
  );
  expect(diagnosis.names("fail")).toEqual(["image"]);
});

test("an instance type that the region does not offer", async () => {
  const diagnosis = await fixture().diagnose({ defaults: { instanceType: "m99.large" } });
  expect(diagnosis.told("instance type")).toMatch(
    /^fail: .*m99\.large is not offered in region us-west-2\. → .*`inst/,
  );
  expect(diagnosis.told("ec2:RunInstances")).toStartWith("skip: Not tested");
});

test("an address of this computer that cannot be determined", async () => {
  const environment = { CLUSTER_CHECK_ADDRESS_URL: `http://127.0.0.1:${await freePort()}` };
  const diagnosis = await fixture().diagnose({ environment });
  expect(diagnosis.told("admin address")).toMatch(/^fail: .* → .*`adminCidrs`/);
  expect(diagnosis.names("fail")).toEqual(["admin address"]);
});
