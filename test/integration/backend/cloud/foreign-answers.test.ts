/** Answers that aren't from EC2, such as a captive portal's: they must not be mistaken for errors or empty results. */
import { expect, test } from "bun:test";
import { leftIn, nothing, openFixture, region } from "../../../support/cloud-fixture.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { neverAborted } from "../../../support/never-aborted.ts";

const oneNode = { counts: { master: 1, agent: 0, public_agent: 0 } } as const;
const page = "<!DOCTYPE html><html><body>Log in to the guest network</body></html>";
const wholeAnswer = (action: string, content: string): string =>
  `<?xml version="1.0" encoding="UTF-8"?>\n<${action}Response xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><requestId>r</requestId>${content}</${action}Response>`;

const foreign = {
  "a web page": { status: 200, body: page, contentType: "text/html" },
  "a web page with a refusal's status": { status: 403, body: page, contentType: "text/html" },
  nothing: { status: 200, body: "" },
  "nothing, with a refusal's status": { status: 407, body: "" },
  "half of an answer": {
    status: 200,
    body: wholeAnswer("DescribeInstances", "<reservationSet/>").slice(0, -30),
  },
  "a malformed answer": {
    status: 200,
    body: wholeAnswer("DescribeInstances", "<reservationSet><item></reservationSet>"),
  },
  "an answer without its content": { status: 200, body: wholeAnswer("DescribeInstances", "") },
  "a failure's document with a success's status": {
    status: 200,
    body: "<Response><Errors><Error><Code>AuthFailure</Code><Message>no</Message></Error></Errors></Response>",
  },
  "a fault of EC2 itself": {
    status: 500,
    body: "<Response><Errors><Error><Code>InternalError</Code><Message>An internal error has occurred</Message></Error></Errors></Response>",
  },
  JSON: { status: 200, body: '{"message": "OK"}', contentType: "application/json" },
  "JSON that refuses": {
    status: 400,
    body: '{"message": "bad gateway"}',
    contentType: "application/json",
  },
} as const;

// Shows R101.
test.each(Object.entries(foreign))("%s: list asks again, and gets the answer", async (_, raw) => {
  await using fixture = await openFixture({});
  const backend = await fixture.open(region);
  const cluster = await fixture.create(backend, fixture.request("default", oneNode), neverAborted);
  fixture.cloud.requests.clear();
  fixture.cloud.faults.add({ action: "DescribeInstances", when: "before", times: 2, raw });
  expect((await backend.list(neverAborted)).map(({ id }) => id)).toEqual([cluster.id]);
  expect(fixture.cloud.requests.entries.map(({ outcome }) => outcome)).toEqual([
    "raw",
    "raw",
    "ok",
  ]);
});

// Shows R101.
test("if such answers continue, the error is cloud-failed and shows the answer", async () => {
  const stays = {
    "a web page": "a web page, perhaps of a proxy or a login portal, came instead (HTTP 200)",
    "nothing, with a refusal's status": "an empty answer came instead (HTTP 407)",
    "an answer without its content": "its answer lacks the instances",
    "a malformed answer": "a malformed document came instead",
  } as const;
  const outcomes = Object.keys(stays).map(async (name) => {
    await using fixture = await openFixture({});
    const backend = await fixture.open(region);
    const raw = foreign[name as keyof typeof stays];
    fixture.cloud.faults.add({ action: "DescribeInstances", when: "before", times: "always", raw });
    const failure = await failureOf(backend.list(neverAborted));
    expect(failure).toMatchObject({
      id: "cloud-failed",
      transient: true,
      facts: { code: expect.stringMatching(/Answer$/) },
    });
    return [name, failure.message.replace(fixture.cloud.endpoint, "ENDPOINT")];
  });
  const expected = Object.entries(stays).map(([name, what]) => [
    name,
    `The API in region us-west-2 did not answer ec2:DescribeInstances: ${what}. The request went to ENDPOINT/, from AWS_ENDPOINT_URL_EC2.`,
  ]);
  expect(await Promise.all(outcomes)).toEqual(expected);
});

test.each([
  ["CreateSecurityGroup", page],
  ["CreateSecurityGroup", wholeAnswer("CreateSecurityGroup", "")],
  ["AuthorizeSecurityGroupIngress", wholeAnswer("AuthorizeSecurityGroupIngress", "")],
  ["RunInstances", page],
  ["RunInstances", wholeAnswer("RunInstances", "<instancesSet/>")],
])("%s is repeated if it was executed and got a foreign answer", async (action, body) => {
  await using fixture = await openFixture({});
  const { cloud } = fixture;
  cloud.faults.add({ action, when: "after", times: 2, raw: { status: 200, body } });
  const backend = await fixture.open(region);
  const cluster = await fixture.create(backend, fixture.request("default", oneNode), neverAborted);
  expect(cluster.state).toBe("running");
  expect(leftIn(cloud)).toEqual({ machines: 1, groups: 1 });
});

test.each([
  ["TerminateInstances", "before", page],
  ["TerminateInstances", "before", wholeAnswer("TerminateInstances", "<instancesSet/>")],
  ["DescribeInstances", "before", page],
  ["DescribeSecurityGroups", "before", page],
  ["DeleteSecurityGroup", "before", page],
  ["DeleteSecurityGroup", "before", wholeAnswer("DeleteSecurityGroup", "")],
] as const)(
  "a roll-back whose %s (%s) gets a foreign answer goes on until nothing is left",
  async (action, when, body) => {
    await using fixture = await openFixture({});
    const { cloud } = fixture;
    const backend = await fixture.open(region);
    const failure = new Error("the installation did not start");
    const request = fixture.request("default", {
      ...oneNode,
      complete: async () => {
        cloud.faults.add({ action, when, times: 3, raw: { status: 200, body } });
        throw failure;
      },
    });
    expect(
      await fixture.create(backend, request, neverAborted).catch((error: unknown) => error),
    ).toBe(failure);
    expect(leftIn(cloud)).toEqual(nothing);
    expect(fixture.told.filter((line) => line.startsWith("warn: "))).toEqual([]);
  },
);

// Shows R101.
test("a launch whose answer never names its machines is rolled back; its token finds them", async () => {
  await using fixture = await openFixture({});
  const { cloud } = fixture;
  const raw = { status: 200, body: wholeAnswer("RunInstances", "<instancesSet/>") };
  cloud.faults.add({ action: "RunInstances", when: "after", times: "always", raw });
  const backend = await fixture.open(region);
  const failure = await failureOf(
    fixture.create(backend, fixture.request("default", oneNode), neverAborted),
  );
  expect(failure).toMatchObject({ id: "cloud-failed", facts: { code: "IncompleteAnswer" } });
  expect(failure.message).toContain("1 of 1 instances");
  expect(leftIn(cloud)).toEqual(nothing);
  expect(cloud.instances()).toHaveLength(1);
});
