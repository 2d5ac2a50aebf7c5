/** Requests and answers of the API: what is sent, logged and masked, and which answers count. */

import { expect, test } from "bun:test";
import { type Action, describeInstances } from "../../../../../src/backend/cloud/api/api.ts";
import { createCloudBackend } from "../../../../../src/backend/cloud/cloud-backend.ts";
import { openApi } from "../../../../../src/backend/cloud/api/open-api.ts";
import { unmarked } from "../../../../../src/outside-text.ts";
import type { Runtime } from "../../../../../src/system/runtime.ts";
import { failureOf } from "../../../../support/failure-of.ts";
import { serveOnLoopback } from "../../../../support/loopback-server.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";
import { recordingProgress } from "../../../../support/recording-progress.ts";

/** This machine's clock, which is an hour behind. */
const nowMs = Math.floor(Date.now() / 1000) * 1000 - 3_600_000;

interface Answer {
  readonly status?: number;
  readonly body: string;
  readonly date?: string;
  readonly requestId?: string;
}

const success = (action: string, content: string): Answer => ({
  requestId: "r-1",
  body: `<${action}Response xmlns="http://ec2.amazonaws.com/doc/2016-11-15/">${content}</${action}Response>`,
});
const refusal = (code: string, message: string): Answer => ({
  status: 403,
  requestId: "r-2",
  body: `<Response><Errors><Error><Code>${code}</Code><Message>${message}</Message></Error></Errors></Response>`,
});

/** An API whose server gives these answers in turn; the last one stays. */
async function openServer(
  answers: readonly Answer[],
  environment: Readonly<Record<string, string>> = {},
) {
  const requests: URLSearchParams[] = [];
  const server = serveOnLoopback(async (request) => {
    requests.push(new URLSearchParams(await request.text()));
    const {
      status = 200,
      body,
      date,
      requestId,
    } = answers[Math.min(requests.length, answers.length) - 1]!;
    const headers = new Headers({ "content-type": "text/xml" });
    if (date !== undefined) headers.set("date", date);
    if (requestId !== undefined) headers.set("x-amzn-requestid", requestId);
    return new Response(body, { status, headers });
  });
  const { progress } = recordingProgress();
  const [told, hidden]: [string[], string[]] = [[], []];
  const runtime: Runtime = {
    environment: {
      HOME: "/nonexistent",
      AWS_ENDPOINT_URL: server.url.href,
      CLOUD_ACCESS_KEY_ID: "AKID",
      CLOUD_SECRET_ACCESS_KEY: "a-secret",
      ...environment,
    },
    clock: {
      now: () => nowMs,
      sleep: async () => Promise.reject(new Error("nobody should sleep")),
    },
    progress: {
      ...progress,
      detail: (level, text) => void told.push(unmarked(`${level}: ${text}`)),
      hide: (secret) => void hidden.push(secret),
    },
  };
  const api = (await openApi({ ...runtime, signal: neverAborted }, "us-west-2"))("us-west-2");
  return {
    api,
    runtime,
    requests,
    told,
    hidden,
    url: server.url.href,
    [Symbol.dispose]: () => void server.stop(true),
  };
}

const regions = success("DescribeRegions", "<regionInfo/>");

test("secrets are masked, the source of the credentials is shown, and each request is logged", async () => {
  using server = await openServer([regions], { CLOUD_SESSION_TOKEN: "a-token" });
  expect([server.hidden, server.requests]).toEqual([["a-secret", "a-token"], []]);
  await server.api.call("DescribeRegions", {}, neverAborted);
  expect(server.told).toEqual([
    "1: Credentials from the variables CLOUD_ACCESS_KEY_ID, CLOUD_SECRET_ACCESS_KEY, CLOUD_SESSION_TOKEN",
    "2: ec2:DescribeRegions in us-west-2 answered (request r-1) after 0 ms",
  ]);
  expect(server.api.credentialsExpireAt).toBeUndefined();
});

test("a refusal is logged with its request; only the log has its encoded message", async () => {
  const message = "You are not authorized. Encoded authorization failure message: abc-123";
  using server = await openServer([refusal("UnauthorizedOperation", message)]);
  const error = await failureOf(server.api.call("DescribeRegions", {}, neverAborted));
  expect(error.message).not.toContain("abc-123");
  expect(server.told.slice(1)).toEqual([
    "2: ec2:DescribeRegions in us-west-2 failed (UnauthorizedOperation, request r-2) after 0 ms",
    "1: Encoded authorization message: abc-123",
  ]);
});

test("a refusal without an id, and an interrupt, are logged as such", async () => {
  const { requestId: _, ...unnumbered } = refusal("InvalidThing", "No.");
  using server = await openServer([unnumbered]);
  await failureOf(server.api.call("DescribeRegions", {}, neverAborted));
  const reason = new Error("interrupted");
  const interrupted: unknown = await failureOf(
    server.api.call("DescribeRegions", {}, AbortSignal.abort(reason)),
  );
  expect(interrupted).toBe(reason);
  expect(server.told.slice(1)).toEqual([
    "2: ec2:DescribeRegions in us-west-2 failed (InvalidThing, request without an id) after 0 ms",
    "2: ec2:DescribeRegions in us-west-2 was cancelled after 0 ms",
  ]);
});

test("the API's time is that of its latest answer; a refusal says how far this computer's clock is off", async () => {
  const date = new Date(nowMs + 3_600_000).toUTCString();
  using server = await openServer([
    { ...regions, date },
    { ...refusal("AuthFailure", "No."), date },
  ]);
  expect(server.api.now()).toBe(nowMs);
  await server.api.call("DescribeRegions", {}, neverAborted);
  expect(server.api.now()).toBe(nowMs + 3_600_000);
  const error = await failureOf(server.api.call("DescribeRegions", {}, neverAborted));
  expect(error.hint).toBe("This computer's clock is 3600 s behind the API's: correct it.");
});

test.each(["AWS_ENDPOINT_URL_EC2", "AWS_ENDPOINT_URL"])("%s must be a URL", async (name) => {
  const { progress } = recordingProgress();
  const runtime = { environment: { [name]: "junk" }, progress } as unknown as Runtime;
  const failure = await failureOf(openApi({ ...runtime, signal: neverAborted }, "us-west-2"));
  expect(failure).toMatchObject({
    id: "machine-not-set-up",
    message: expect.stringContaining(name),
  });
});

test("a clock that is off shows in a list", async () => {
  const answer = {
    ...success("DescribeInstances", "<reservationSet/>"),
    date: new Date(nowMs + 3_600_000).toUTCString(),
  };
  using server = await openServer([answer]);
  const warnings: string[] = [];
  const progress = { ...server.runtime.progress, warn: (text: string) => void warnings.push(text) };
  const backend = await createCloudBackend(
    { ...server.runtime, progress, signal: neverAborted },
    { region: "us-west-2" },
  );
  expect(await backend.list(neverAborted)).toEqual([]);
  expect(warnings).toEqual([
    "This computer's clock is 3600 s behind the cloud's: ages and times left are wrong.",
  ]);
});

test("AWS_ENDPOINT_URL_EC2 comes before AWS_ENDPOINT_URL", async () => {
  using unused = await openServer([regions]);
  using server = await openServer([regions], { AWS_ENDPOINT_URL_EC2: unused.url });
  await server.api.call("DescribeRegions", {}, neverAborted);
  expect([unused.requests.length, server.requests.length]).toEqual([1, 0]);
});

const instances = (...ids: readonly string[]): string =>
  `<instancesSet>${ids.map((id) => `<item><instanceId>${id}</instanceId></item>`).join("")}</instancesSet>`;

test.each<[string, Action, object, readonly [string, string]]>([
  ["no instances", "RunInstances", { MinCount: 1 }, ["<instancesSet/>", instances("i-1")]],
  [
    "one instance of two",
    "RunInstances",
    { MinCount: 2 },
    [instances("i-1", ""), instances("i-1", "i-2")],
  ],
  [
    "another instance",
    "TerminateInstances",
    { InstanceIds: ["i-1"] },
    [instances("i-2"), instances("i-2", "i-1")],
  ],
  ["no list", "DescribeInstances", {}, ["", "<reservationSet/>"]],
  ["no id", "CreateSecurityGroup", {}, ["<groupId></groupId>", "<groupId>sg-1</groupId>"]],
  ["no confirmation", "DeleteSecurityGroup", { GroupId: "sg-1" }, ["", "<return>true</return>"]],
])(
  "an answer with %s to %s is not the whole one, so the request is repeated",
  async (_, action, input, answers) => {
    using server = await openServer(answers.map((content) => success(action, content)));
    await server.api.call(action, input, neverAborted);
    expect(server.requests).toHaveLength(2);
  },
);

test("a complete answer is asked for once", async () => {
  using server = await openServer([success("RunInstances", instances("i-1", "i-2"))]);
  const answer = await server.api.call("RunInstances", { MinCount: 2, MaxCount: 2 }, neverAborted);
  expect(answer.Instances?.map(({ InstanceId }) => InstanceId)).toEqual(["i-1", "i-2"]);
  expect(server.requests).toHaveLength(1);
  // Without a number, one instance is requested.
  using other = await openServer([success("RunInstances", instances("i-1"))]);
  await other.api.call("RunInstances", { MinCount: undefined, MaxCount: undefined }, neverAborted);
  expect(other.requests).toHaveLength(1);
});

test("instances are asked for page by page, a thousand at once, by the tags of our own", async () => {
  const page = (id: string, token: string): Answer =>
    success(
      "DescribeInstances",
      `<reservationSet><item>${instances(id)}</item></reservationSet><nextToken>${token}</nextToken>`,
    );
  using server = await openServer([page("i-1", "more"), page("i-2", "")]);
  const found = await describeInstances(server.api, "all", neverAborted);
  expect(found.map(({ InstanceId }) => InstanceId)).toEqual(["i-1", "i-2"]);
  const fields = ["Filter.1.Name", "Filter.1.Value.1", "MaxResults", "NextToken"];
  expect(server.requests.map((request) => fields.map((field) => request.get(field)))).toEqual([
    ["tag-key", "cluster-e2e:cluster-id", "1000", null],
    ["tag-key", "cluster-e2e:cluster-id", "1000", "more"],
  ]);
});

test.each([
  ["a cluster's", { clusterId: "a" }, "tag:cluster-e2e:cluster-id", ["a"]],
  [
    "a creation's",
    { creationId: "0123456789abcdef" },
    "tag:cluster-e2e:creation-id",
    ["0123456789abcdef"],
  ],
  ["a launch's", { clientToken: "t" }, "client-token", ["t"]],
  ["chosen", { ids: ["i-1", "i-2"] }, "instance-id", ["i-1", "i-2"]],
])("only %s instances are asked for", async (_, selection, name, values) => {
  using server = await openServer([success("DescribeInstances", "<reservationSet/>")]);
  await describeInstances(server.api, selection, neverAborted);
  const [request] = server.requests;
  expect(request?.get("Filter.1.Name")).toBe(name);
  expect(values.map((_value, index) => request?.get(`Filter.1.Value.${index + 1}`))).toEqual(
    values,
  );
});
