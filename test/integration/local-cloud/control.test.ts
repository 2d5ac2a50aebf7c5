/** The local cloud's control endpoint, through which tests in another process script it. */
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { DescribeRegionsCommand, type EC2Client, RunInstancesCommand } from "@aws-sdk/client-ec2";
import {
  codeOf,
  debianImage,
  eventually,
  launchOf,
  startCloud,
} from "../../local-cloud/support/sdk.ts";

const opened: { current?: Awaited<ReturnType<typeof startCloud>> } = {};
const client = (): EC2Client => opened.current!.client;
const cloud = () => opened.current!.cloud;

beforeAll(async () => {
  opened.current = await startCloud({ behaviour: { pendingMs: 10, shuttingDownMs: 10 } });
});

afterAll(async () => opened.current?.[Symbol.asyncDispose]());

async function control(
  method: "GET" | "POST" | "DELETE",
  path: string,
  body?: unknown,
): Promise<unknown> {
  const headers = { authorization: `Bearer ${cloud().controlToken}` };
  const init = { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) };
  const response = await fetch(`${cloud().endpoint}/_control/${path}`, init);
  return response.ok ? response.json() : `${response.status} ${await response.text()}`;
}

beforeEach(async () => control("POST", "reset", {}));

const ask = async () => codeOf(client().send(new DescribeRegionsCommand({})));

test("faults are added and cleared", async () => {
  const fault = { action: "DescribeRegions", when: "before", code: "Unavailable" };
  await control("POST", "faults", { ...fault, times: "always" });
  expect([await ask(), await ask()]).toEqual(["Unavailable", "Unavailable"]);
  await control("DELETE", "faults");
  expect(await ask()).toBe("ok");
  await control("POST", "faults", fault);
  expect([await ask(), await ask()]).toEqual(["Unavailable", "ok"]);
});

test("the log contains every request, including those in progress", async () => {
  await control("POST", "faults", { action: "DescribeRegions", when: "before", delayMs: 200 });
  const asked = ask();
  const isLogged = (log: unknown) => JSON.stringify(log).includes('"DescribeRegions"');
  const during = await eventually(async () => control("GET", "requests"), isLogged);
  expect(during).toMatchObject({
    total: 1,
    requests: [{ action: "DescribeRegions", outcome: "unanswered" }],
  });
  await asked;
  expect(await control("GET", "requests")).toMatchObject({
    counts: { DescribeRegions: 1 },
    requests: [{ outcome: "ok", region: "us-west-2" }],
  });
});

test("shows the actual state of instances, and kills them", async () => {
  const launch = launchOf(await debianImage(client()), {
    UserData: Buffer.from("#cloud-config\n{}").toString("base64"),
    InstanceInitiatedShutdownBehavior: "terminate",
  });
  const { Instances } = await client().send(new RunInstancesCommand(launch));
  const instanceId = Instances![0]!.InstanceId!;
  const show = async () => control("GET", "instances");
  const inState = (state: string) => (shown: unknown) =>
    JSON.stringify(shown).includes(`"state":"${state}"`);
  expect(await eventually(show, inState("running"))).toMatchObject([
    { instanceId, zone: "us-west-2a", userData: "#cloud-config\n{}", tags: {} },
  ]);
  await control("POST", `instances/${instanceId}/kill`);
  await eventually(show, inState("terminated"));
});

test("a reset ends the machines and forgets everything else", async () => {
  const launch = launchOf(await debianImage(client()), {
    ClientToken: "same",
    MinCount: 2,
    MaxCount: 2,
  });
  await client().send(new RunInstancesCommand(launch));
  await control("POST", "behaviour", { deniedActions: ["DescribeRegions"] });
  expect(await ask()).toBe("UnauthorizedOperation");
  await control("POST", "reset", {});
  expect(await ask()).toBe("ok");
  expect(await control("GET", "instances")).toEqual([]);
  expect(
    await codeOf(client().send(new RunInstancesCommand({ ...launch, MinCount: 1, MaxCount: 1 }))),
  ).toBe("ok");
});

test.each([
  ["a misspelt fault", "faults", { action: "X", when: "before", time: 1, code: "Y" }],
  ["an unknown change", "faults", { action: "X", when: "after", change: "all" }],
  ["a fault without effect", "faults", { action: "X", when: "before" }],
  ["an unknown behaviour", "behaviour", { pending: 1 }],
  ["a clock without a number", "clock", { skewMs: "1" }],
])("%s is rejected", async (_what, path, body) => {
  expect(await control("POST", path, body)).toStartWith("400 ");
});

test("an unknown path isn't found", async () => {
  expect(await control("GET", "volumes")).toStartWith("404 ");
});

test("the caller's address is returned", async () => {
  const response = await fetch(cloud().checkAddressUrl);
  expect(await response.text()).toBe("127.0.0.1\n");
});
