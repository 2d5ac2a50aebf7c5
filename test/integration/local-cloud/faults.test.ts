/** The local cloud's scripted faults, limits, and rejections of callers. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import {
  CreateSecurityGroupCommand,
  DescribeInstancesCommand,
  DescribeSubnetsCommand,
  type EC2Client,
  RunInstancesCommand,
  type RunInstancesCommandInput,
} from "@aws-sdk/client-ec2";
import { accounts } from "../../local-cloud/endpoint/accounts.ts";
import {
  clientOf,
  codeOf,
  debianImage,
  eventually,
  failureOf,
  launchOf,
  startCloud,
} from "../../local-cloud/support/sdk.ts";

const opened: { current?: Awaited<ReturnType<typeof startCloud>>; image?: string } = {};
const client = (): EC2Client => opened.current!.client;
const cloud = () => opened.current!.cloud;

beforeAll(async () => {
  opened.current = await startCloud({ behaviour: { instancesVisibleAfterMs: 0, pendingMs: 20 } });
  opened.image = await debianImage(client());
});

afterAll(async () => opened.current?.[Symbol.asyncDispose]());
beforeEach(async () => cloud().reset());

const describeInstances = async (from: EC2Client) => from.send(new DescribeInstancesCommand({}));
const run = async (changes: Partial<RunInstancesCommandInput>) =>
  client().send(new RunInstancesCommand(launchOf(opened.image!, changes)));
const createGroup = async () =>
  client().send(new CreateSecurityGroupCommand({ GroupName: "g", Description: "for a test" }));

describe("authentication", () => {
  test.each<[string, Parameters<typeof clientOf>[1], string]>([
    ["an unknown key", { accessKeyId: "AKIAUNKNOWN" }, "AuthFailure"],
    ["a wrong secret", { secretAccessKey: "wrong" }, "SignatureDoesNotMatch"],
    ["a session that has run out", accounts.expired, "RequestExpired"],
    ["a region that isn't enabled", { region: "af-south-1" }, "AuthFailure"],
    ["another region that isn't enabled", { region: "me-south-1" }, "OptInRequired"],
    ["a region that isn't there", { region: "mars-1" }, "AuthFailure"],
    ["another account", accounts.other, "ok"],
  ])("%s: %s", async (_what, settings, code) => {
    expect(await codeOf(describeInstances(clientOf(cloud(), settings)))).toBe(code);
  });

  test("a request without a signature is rejected", async () => {
    const body = new URLSearchParams({ Action: "DescribeInstances", Version: "2016-11-15" });
    const response = await fetch(cloud().endpoint, { method: "POST", body });
    expect(response.status).toBe(401);
    expect(await response.text()).toContain("<Code>AuthFailure</Code>");
  });

  test("a wrong clock is rejected, and the response contains the right time", async () => {
    cloud().clock.skew(600_000);
    // A separate client, because the SDK learns the offset and keeps it.
    expect(await codeOf(describeInstances(clientOf(cloud(), {})))).toBe("RequestExpired");
    const askedMs = Date.now();
    const response = await fetch(cloud().endpoint, { method: "POST", body: "" });
    const shownMs = Date.parse(response.headers.get("date") ?? "");
    // The header has no fractions of a second.
    expect(shownMs - 600_000).toBeWithin(askedMs - 1000, Date.now() + 1);
  });

  test("the error about a denied action names the action", async () => {
    cloud().behaviour.change({ deniedActions: ["RunInstances"] });
    const refused = run({ DryRun: true });
    expect(await codeOf(refused)).toBe("UnauthorizedOperation");
    expect(await failureOf(refused)).toMatch(
      /not authorized to perform: ec2:RunInstances .*Encoded authorization failure/,
    );
  });
});

describe("a scripted fault", () => {
  test("before: the action isn't executed, `times` times, after `skip` requests", async () => {
    cloud().faults.add({
      action: "CreateSecurityGroup",
      when: "before",
      times: 1,
      skip: 1,
      code: "InternalError",
    });
    expect(await codeOf(describeInstances(client()))).toBe("ok");
    expect(await codeOf(createGroup())).toBe("ok");
    expect(await codeOf(createGroup())).toBe("InternalError");
    expect(await codeOf(createGroup())).toBe("InvalidGroup.Duplicate");
  });

  test("lost after: the action is executed and the connection closed", async () => {
    cloud().faults.add({ action: "RunInstances", when: "after", times: 1, lost: true });
    const changes = { ClientToken: "lost" };
    expect(await failureOf(run(changes))).not.toBe("");
    expect(cloud().instances()).toHaveLength(1);
    const again = await run(changes);
    expect(again.Instances!.map(({ InstanceId }) => InstanceId!)).toEqual([
      cloud().instances()[0]!.instanceId,
    ]);
    expect(cloud().requests.entries.map(({ outcome }) => outcome)).toEqual(["lost", "ok"]);
  });

  test("raw: this is sent instead of the response", async () => {
    const raw = { status: 200, body: "<html>Log in</html>", contentType: "text/html" };
    cloud().faults.add({ action: "CreateSecurityGroup", when: "after", times: 1, raw });
    // The SDK mistakes it for a response without a group.
    expect((await createGroup()).GroupId).toBeUndefined();
    expect(await codeOf(createGroup())).toBe("InvalidGroup.Duplicate");
    expect(cloud().requests.entries.map(({ outcome }) => outcome)).toEqual([
      "raw",
      "InvalidGroup.Duplicate",
    ]);
  });

  test("cut: the action is executed and the connection closed in the middle of the response", async () => {
    cloud().faults.add({ action: "CreateSecurityGroup", when: "after", times: 1, cut: true });
    expect(await failureOf(createGroup())).not.toBe("");
    expect(cloud().groups()).toHaveLength(1);
    expect(cloud().requests.entries.map(({ outcome }) => outcome)).toEqual(["lost"]);
  });

  test.each([
    ["half-tags", [1, 1, "address"]],
    ["no-address", [1, 2, "no address"]],
    ["no-machines", [0, 0, "no address"]],
  ] as const)(
    "change %s: the response of an executed action is changed",
    async (change, expected) => {
      const tags = ["a", "b"].map((Key) => ({ Key, Value: "x" }));
      await run({ TagSpecifications: [{ ResourceType: "instance", Tags: tags }] });
      const seen = async () => {
        const { Reservations } = await describeInstances(client());
        const instances = Reservations!.flatMap(({ Instances }) => Instances ?? []);
        const hasAddress = instances.some(({ PublicIpAddress }) => PublicIpAddress !== undefined);
        return [
          instances.length,
          instances[0]?.Tags?.length ?? 0,
          hasAddress ? "address" : "no address",
        ];
      };
      await eventually(seen, ([, tagCount, address]) => tagCount === 2 && address === "address");
      cloud().faults.add({ action: "DescribeInstances", when: "after", times: 1, change });
      expect(await seen()).toEqual([...expected]);
      expect(await seen()).toEqual([1, 2, "address"]);
    },
  );

  test("change first-half: half of the response is sent as if it were all", async () => {
    cloud().faults.add({
      action: "DescribeInstances",
      when: "after",
      times: 1,
      change: "first-half",
    });
    expect(await failureOf(describeInstances(client()))).not.toBe("");
    expect(await codeOf(describeInstances(client()))).toBe("ok");
  });

  test("forMs: it lasts this long from the first request to which it applies", async () => {
    const lasting = {
      action: "DescribeInstances",
      when: "before",
      times: "always",
      code: "InternalError",
    } as const;
    cloud().faults.add({ ...lasting, forMs: 20 });
    await Bun.sleep(30);
    expect(await codeOf(describeInstances(client()))).toBe("InternalError");
    await Bun.sleep(30);
    expect(await codeOf(describeInstances(client()))).toBe("ok");
  });

  test("those that were added together say whether all have struck, and are cleared together", async () => {
    const lasting = { when: "before", times: "always", code: "InternalError" } as const;
    cloud().faults.add({ ...lasting, action: "CreateSecurityGroup" });
    const added = cloud().faults.add(
      { ...lasting, action: "DescribeInstances" },
      { ...lasting, action: "RunInstances", skip: 1 },
    );
    expect([
      await codeOf(describeInstances(client())),
      await codeOf(run({})),
      added.hasStruck(),
    ]).toEqual(["InternalError", "ok", false]);
    expect([await codeOf(run({})), added.hasStruck()]).toEqual(["InternalError", true]);
    await added[Symbol.asyncDispose]();
    expect([await codeOf(run({})), await codeOf(createGroup())]).toEqual(["ok", "InternalError"]);
  });

  test("hangs: there is no response until the client gives up", async () => {
    cloud().faults.add({ action: "DescribeInstances", when: "before", times: 1, hangs: true });
    const controller = new AbortController();
    const call = client().send(new DescribeInstancesCommand({}), {
      abortSignal: controller.signal,
    });
    await eventually(
      async () => cloud().requests.entries,
      ({ length }) => length === 1,
    );
    controller.abort();
    expect(await codeOf(call)).toBe("AbortError");
    await eventually(
      async () => cloud().requests.entries[0]!.outcome,
      (outcome) => outcome === "lost",
    );
    expect(await codeOf(describeInstances(client()))).toBe("ok");
  });

  test("match: only requests with these parameters", async () => {
    const { Subnets } = await client().send(new DescribeSubnetsCommand({}));
    const [first, second] = Subnets!.map(({ SubnetId }) => SubnetId!);
    const code = "InsufficientInstanceCapacity";
    cloud().faults.add({
      action: "RunInstances",
      when: "before",
      times: "always",
      match: { SubnetId: first! },
      code,
    });
    expect(await codeOf(run({ SubnetId: second! }))).toBe("ok");
    expect(await codeOf(run({ SubnetId: first! }))).toBe(code);
  });

  test("launch: the machine ends in terminated, with this reason", async () => {
    const code = "Client.VolumeLimitExceeded";
    cloud().faults.add({
      action: "RunInstances",
      when: "launch",
      times: 1,
      code,
      message: `${code}: too much storage`,
    });
    await run({ MinCount: 2, MaxCount: 2 });
    const states = () =>
      cloud()
        .instances()
        .map(({ state }) => state)
        .toSorted();
    await eventually(
      async () => states(),
      (seen) => !seen.includes("pending"),
    );
    expect(states()).toEqual(["running", "terminated"]);
    const { Reservations } = await describeInstances(client());
    const ended = Reservations![0]!.Instances!.find((one) => one.State!.Name === "terminated");
    expect(ended!.StateReason).toEqual({ Code: code, Message: `${code}: too much storage` });
  });

  test("delayMs: delays the response", async () => {
    cloud().faults.add({ action: "DescribeInstances", when: "after", times: 1, delayMs: 150 });
    const startMs = performance.now();
    await describeInstances(client());
    expect(performance.now() - startMs).toBeGreaterThanOrEqual(149);
  });
});

describe("limits", () => {
  test("throttling allows a burst, then rejects requests", async () => {
    cloud().behaviour.change({ throttle: { burst: 3, perSecond: 1 } });
    const codes = await Promise.all(
      Array.from({ length: 5 }, async () => codeOf(describeInstances(client()))),
    );
    expect(codes.filter((code) => code === "RequestLimitExceeded")).toHaveLength(2);
  });

  test("a full zone has no capacity; others have", async () => {
    cloud().behaviour.change({ zoneCapacity: { "us-west-2a": 2 } });
    const inZone = (zone: string): Partial<RunInstancesCommandInput> => ({
      Placement: { AvailabilityZone: zone },
    });
    expect(await codeOf(run({ ...inZone("us-west-2a"), MinCount: 3, MaxCount: 3 }))).toBe(
      "InsufficientInstanceCapacity",
    );
    expect(
      (await run({ ...inZone("us-west-2a"), MinCount: 1, MaxCount: 3 })).Instances,
    ).toHaveLength(2);
    expect(await codeOf(run({ ...inZone("us-west-2b"), MinCount: 3, MaxCount: 3 }))).toBe("ok");
  });

  test("an instance type can be missing in a zone", async () => {
    const call = run({ Placement: { AvailabilityZone: "us-west-2d" } });
    expect(await codeOf(call)).toBe("Unsupported");
    expect(await failureOf(call)).toContain("choosing us-west-2a, us-west-2b, us-west-2c");
  });

  test("vCPUs are limited", async () => {
    cloud().behaviour.change({ vcpuLimit: 5 });
    expect(await codeOf(run({ MinCount: 3, MaxCount: 3 }))).toBe("VcpuLimitExceeded");
    expect(await codeOf(run({ MinCount: 2, MaxCount: 2 }))).toBe("ok");
  });
});
