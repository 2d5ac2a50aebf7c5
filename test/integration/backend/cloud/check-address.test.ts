/** How this machine's public address is found out, and what is said if it can't be. */
import { expect, test } from "bun:test";
import { cloudAdmission } from "../../../../src/backend/cloud/admission.ts";
import { CloudCreation } from "../../../../src/backend/cloud/cloud-creation.ts";
import { checkAddress } from "../../../../src/backend/cloud/launch/network.ts";
import { resolveCreation } from "../../../../src/backend/cloud/plan.ts";
import { whyUnreachableText } from "../../../../src/backend/cloud/launch/look-at-machines.ts";
import { networkFailure } from "../../../../src/system/network-failure.ts";
import { requestDirectly } from "../../../../src/backend/cloud/api/request-handler.ts";
import type { Runtime } from "../../../../src/system/runtime.ts";
import { silentProgress } from "../../../support/silent-progress.ts";
import { newRequest } from "../../../support/cloud-fixture.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { freePort } from "../../../support/free-port.ts";
import { serveOnLoopback } from "../../../support/loopback-server.ts";
import { scriptedCloud } from "../../../support/scripted-cloud.ts";
import { neverAborted } from "../../../support/never-aborted.ts";

const runtimeFor = (url: string) => ({
  environment: { CLUSTER_CHECK_ADDRESS_URL: url },
  progress: silentProgress,
});

/** Runs a task with an environment whose address service answers like this. */
async function withAnswer<Result>(
  { status = 200, text }: { readonly status?: number; readonly text: string },
  task: (runtime: Pick<Runtime, "environment" | "progress">) => Promise<Result>,
): Promise<Result> {
  using server = serveOnLoopback(() => new Response(text, { status }));
  return await task(runtimeFor(server.url.href));
}

test("the answer is the address", async () => {
  const text = " 192.0.2.7\n";
  expect(
    await withAnswer({ text }, async (runtime) =>
      checkAddress({ ...runtime, signal: neverAborted }),
    ),
  ).toBe("192.0.2.7");
});

test("an IPv6 address is refused, because no node could be reached from it", async () => {
  const text = "2001:db8::7\n";
  const error = await withAnswer({ text }, async (runtime) =>
    failureOf(checkAddress({ ...runtime, signal: neverAborted })),
  );
  expect(error.message).toEndWith(
    "it answered with the IPv6 address 2001:db8::7, but nodes have IPv4 addresses only.",
  );
});

test("a service that listens over both is asked over IPv4", async () => {
  const answer = (request: Request, server: Bun.Server<undefined>) =>
    new Response(server.requestIP(request)?.family === "IPv4" ? "192.0.2.7" : "2001:db8::7");
  using four = serveOnLoopback(answer, { host: "localhost" });
  using _six = serveOnLoopback(answer, { host: "localhost", address: "::1", port: four.port! });
  const runtime = runtimeFor(`http://localhost:${four.port}`);
  expect(await checkAddress({ ...runtime, signal: neverAborted })).toBe("192.0.2.7");
});

test("a variable that is set but empty names no service", async () => {
  const error = await failureOf(
    checkAddress({
      ...runtimeFor(""),
      signal: AbortSignal.abort(new Error("asked the usual one")),
    }),
  );
  expect(error.message).toBe("asked the usual one");
});

test.each([
  [200, "<html>Log in first</html>"],
  [503, "192.0.2.7\n"],
])(
  "an answer with status %d and %p is an error that names the service and the option",
  async (status, text) => {
    const error = await withAnswer({ status, text }, async (runtime) =>
      failureOf(checkAddress({ ...runtime, signal: neverAborted })),
    );
    expect(error).toMatchObject({
      id: "machine-not-set-up",
      hint: "Pass the addresses that may reach the cluster with `adminCidrs`.",
    });
    expect(error.message).toMatch(
      /^Cannot find out this computer's public address from http:\/\/127\.0\.0\.1:\d+\/: /,
    );
    expect(error.message).toEndWith(`: it answered with status ${status} and without an address.`);
  },
);

test("a service that does not answer is named, and admit asks for the address instead", async () => {
  const runtime = runtimeFor(`http://127.0.0.1:${await freePort()}`);
  const error = await failureOf(checkAddress({ ...runtime, signal: neverAborted }));
  expect([error.id, error.message]).toEqual([
    "machine-not-set-up",
    expect.stringContaining("(ECONNREFUSED)."),
  ]);
  const { admit } = cloudAdmission(scriptedCloud([], []).api, runtime);
  const cluster = { id: "default", creationId: "0123456789abcdef", directory: "" };
  const refused = await failureOf(
    admit(cluster, { range: undefined, openPorts: [] }, neverAborted),
  );
  expect([refused.message, refused.hint]).toEqual([
    error.message,
    "Pass this computer's public address to the admit command.",
  ]);
});

test("a service that accepts connections and says nothing does not answer", async () => {
  using mute = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data: () => {} } });
  const request = {
    url: new URL(`http://127.0.0.1:${mute.port}/`),
    method: "GET",
    headers: {},
    timeoutMs: 50,
  } as const;
  const failure: unknown = await failureOf(requestDirectly(request, neverAborted));
  expect(networkFailure(failure)).toMatchObject({
    code: "ETIMEDOUT",
    reason: "the host does not answer",
  });
});

test("who waits for the service learns it after some seconds", async () => {
  using mute = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data: () => {} } });
  const url = `http://127.0.0.1:${mute.port}/`;
  const noted = new AbortController();
  const note = (text: string): void => noted.abort(new Error(text));
  const runtime = { ...runtimeFor(url), progress: { ...silentProgress, note } };
  const { message } = await failureOf(checkAddress({ ...runtime, signal: noted.signal }));
  expect(message).toBe(`Waiting for ${url} to name this computer's public address.`);
});

test("an interrupt is not taken for a failure of the service", async () => {
  const reason = new Error("interrupted");
  const asked = withAnswer({ text: "" }, async (runtime) =>
    checkAddress({ ...runtime, signal: AbortSignal.abort(reason) }),
  );
  const error: unknown = await failureOf(asked);
  expect(error).toBe(reason);
});

test.each([
  [
    "a range that does not contain the address",
    "192.0.2.7",
    ["198.51.100.0/24", "203.0.113.9/32"],
    true,
  ],
  ["a range that contains it", "192.0.2.7", ["192.0.2.0/24"], false],
  ["any range, if the address is not known", "?", ["198.51.100.0/24"], false],
])("nodes that let in %s", async (_, text, cidrs, isExplained) => {
  const why = await withAnswer({ text }, async (runtime) =>
    whyUnreachableText({ ...runtime, signal: neverAborted }, cidrs),
  );
  expect(why).toBe(
    isExplained
      ? "This computer's public address is now 192.0.2.7, but the cluster allows only 198.51.100.0/24, 203.0.113.9/32."
      : undefined,
  );
});

test.each([
  ["given", ["198.51.100.9"], ["198.51.100.9/32"]],
  ["not given", [], ["192.0.2.7/32"]],
])("if ranges are %s, %p may reach the nodes", async (_, adminCidrs, expected) => {
  const request = {
    distribution: "debian-12",
    options: { instanceType: "m5.large", customTags: [], adminCidrs },
    needsCgroups1: false,
    folderDistribution: undefined,
  };
  const { api } = scriptedCloud([], []);
  const answers = {
    Images: [{ ImageId: "ami-1" }],
    InstanceTypes: [{}],
    Subnets: [{ SubnetId: "subnet-1", State: "available" }],
  };
  const quick = { ...api, call: async () => answers as never };
  const resolved = await withAnswer({ text: "192.0.2.7" }, async (runtime) =>
    resolveCreation({ ...runtime, signal: neverAborted }, quick, request),
  );
  expect(resolved.cidrs).toEqual(expected);
});

test.each([
  [
    "may not reach them",
    "192.0.2.8",
    expect.stringContaining("pass the addresses that must reach it"),
  ],
  ["may", "192.0.2.7", undefined],
])("a creation says how to reach its nodes if this computer %s", async (_, text, hint) => {
  const image = {
    id: "ami-1",
    name: "debian",
    user: "me",
    rootDevice: "/dev/xvda",
    furtherDevices: [],
    traits: {},
  };
  const resolved = {
    image: { ...image, leastGigabytes: 8, knowsMetadata2: true },
    subnets: [{ id: "subnet-1", vpcId: "vpc-1", zone: "us-west-2a" }],
    cidrs: ["192.0.2.7/32"],
  };
  const { api, runtime: clock } = scriptedCloud([], []);
  const plan = {
    api,
    regionFolder: { region: "us-west-2", root: "/" },
    request: newRequest("default", {}),
    resolved,
  };
  const why = await withAnswer({ text }, async (runtime) =>
    new CloudCreation(plan, { ...clock, ...runtime }).firstLogin.whyUnreachable(neverAborted),
  );
  expect(why?.hint).toEqual(hint);
});
