/** Roll-backs that meet trouble themselves: nothing is forgotten that may still be there. */
import { expect, test } from "bun:test";
import { access, readFile } from "node:fs/promises";
import { creationFiles } from "../../../src/system/files/creation-folder.ts";
import { leftIn, neverAborted, nothing, openFixture, region } from "./cloud-fixture.ts";

const oneNode = { counts: { master: 1, agent: 0, public_agent: 0 } } as const;
const failure = new Error("the installation did not start");

test.each([
  ["TerminateInstances", "to tell the machines to end"],
  ["DescribeSecurityGroups", "to remove the rest"],
])(
  "while %s stays unanswered the roll-back waits, says so, and then leaves nothing",
  async (action, aim) => {
    await using fixture = await openFixture({});
    const { cloud, told } = fixture;
    const backend = await fixture.open(region);
    const request = fixture.request("default", {
      ...oneNode,
      complete: async () => {
        // More than one request is tried.
        cloud.faults.add({ action, when: "before", times: 10, lost: true });
        throw failure;
      },
    });
    expect(await fixture.create(backend, request, neverAborted).catch((error: unknown) => error)).toBe(failure);
    expect(leftIn(cloud)).toEqual(nothing);
    const wait = new RegExp(`^waiting: waiting ${aim}: The API in region us-west-2 .* did not answer ec2:${action}`);
    expect(told.some((line) => wait.test(line))).toBe(true);
    expect(told.filter((line) => line.startsWith("warn: "))).toEqual([]);
  },
  60_000,
);

test("a launch whose answer stays lost is asked for again until there is one", async () => {
  await using fixture = await openFixture({});
  const { cloud } = fixture;
  cloud.faults.add({ action: "RunInstances", when: "after", times: 18, lost: true });
  const backend = await fixture.open(region);
  const request = fixture.request("default", oneNode);
  const outcome = await fixture.create(backend, request, neverAborted).catch((error: unknown) => error);
  expect(outcome).toMatchObject({ id: "cloud-failed", transient: true });
  expect(cloud.instances()).toHaveLength(1);
  expect(leftIn(cloud)).toEqual(nothing);
}, 60_000);

test("credentials that end at the launch: what may be left is told, its folder is kept, and the next create removes it", async () => {
  await using fixture = await openFixture({});
  const { cloud, told } = fixture;
  const backend = await fixture.open(region);
  const directories: string[] = [];
  const request = fixture.request("default", {
    ...oneNode,
    complete: async ({ directory }) => {
      directories.push(directory);
      cloud.faults.add({ action: "*", when: "before", times: "always", code: "RequestExpired" });
      throw failure;
    },
  });
  expect(await fixture.create(backend, request, neverAborted).catch((error: unknown) => error)).toBe(failure);
  expect(told.find((line) => line.startsWith("warn: "))).toMatch(
    /^warn: The removal failed: .* Machines i-\w+ may be left in region us-west-2: they end by themselves at /,
  );
  expect(leftIn(cloud)).toEqual({ machines: 1, groups: 1 });
  const [directory = ""] = directories;
  const { creation, privateKey } = creationFiles(directory);
  expect(JSON.parse(await readFile(creation, "utf8"))).toMatchObject({ state: "abandoned" });
  await access(privateKey);
  cloud.faults.clear();
  const next = await fixture.create(backend, fixture.request("default", oneNode), neverAborted);
  expect(next.state).toBe("running");
  expect(leftIn(cloud)).toEqual({ machines: 1, groups: 1 });
  expect(await access(directory).catch(() => "gone")).toBe("gone");
}, 60_000);

test("a node that cannot be prepared ends the creation while others still start", async () => {
  await using fixture = await openFixture({});
  const { cloud } = fixture;
  cloud.behaviour.change({ bootDelayMs: [0, 60_000] });
  const backend = await fixture.open(region);
  const disposed: string[] = [];
  const request = fixture.request("default", {
    counts: { master: 1, agent: 1, public_agent: 0 },
    installer: () => ({
      prepare: async () => Promise.reject(failure),
      start: async () => Promise.reject(new Error("not all nodes were there")),
      [Symbol.asyncDispose]: async () => void disposed.push("installer"),
    }),
  });
  expect(await fixture.create(backend, request, neverAborted).catch((error: unknown) => error)).toBe(failure);
  expect(disposed).toEqual(["installer"]);
  expect(leftIn(cloud)).toEqual(nothing);
}, 30_000);
