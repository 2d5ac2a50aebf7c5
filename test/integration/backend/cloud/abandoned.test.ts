import { expect, test } from "bun:test";
import { readdir, truncate } from "node:fs/promises";
import { basename, join } from "node:path";
import { stateFolder } from "../../../../src/store/state-folder.ts";
import type { LoggedRequest } from "../../../local-cloud/endpoint/request-log.ts";
import { type CloudFixture, leftIn, openFixture, region } from "../../../support/cloud-fixture.ts";
import { neverAborted } from "../../../support/never-aborted.ts";

/** Starts a create in a separate process, and kills it as soon as `isTime` returns true. */
async function createAndKill(
  fixture: CloudFixture,
  isTime: (requests: readonly LoggedRequest[]) => boolean,
): Promise<void> {
  const { cloud, runtime } = fixture;
  const child = Bun.spawn(
    [process.execPath, join(import.meta.dir, "create-until-killed-program.ts")],
    {
      env: { ...runtime.environment, PATH: process.env["PATH"] },
      stdout: "inherit",
      stderr: "inherit",
    },
  );
  try {
    while (!isTime(cloud.requests.entries)) {
      if (child.exitCode !== null) throw new Error(`the create ended by itself: ${child.exitCode}`);
      await Bun.sleep(1);
    }
  } finally {
    child.kill("SIGKILL");
    await child.exited;
  }
}

const foldersOf = async ({ environment }: CloudFixture["runtime"]): Promise<readonly string[]> =>
  readdir(join(stateFolder(environment), "cloud", region));

const counted = (action: string, count: number) => (requests: readonly LoggedRequest[]) =>
  requests.filter((entry) => entry.action === action).length >= count;

test.each([
  ["after its group was made", counted("CreateSecurityGroup", 1)],
  ["in the middle of launching", counted("RunInstances", 1)],
  ["while its machines started", counted("DescribeInstances", 3)],
])(
  "the next create removes what a create that was killed %s left, and starts over",
  async (_, isTime) => {
    await using fixture = await openFixture({});
    const { cloud, runtime } = fixture;
    cloud.behaviour.change({ pendingMs: 800 });
    await createAndKill(fixture, isTime);
    const backend = await fixture.open(region);
    const request = fixture.request("default", {
      counts: { master: 1, agent: 2, public_agent: 0 },
    });
    const killed = await foldersOf(runtime);
    await backend.plan(request, neverAborted);
    const cluster = await fixture.create(backend, request, neverAborted);
    expect(killed).toHaveLength(1);
    expect(await foldersOf(runtime)).toEqual([basename(cluster.directory)]);
    expect(cluster.state).toBe("running");
    expect(leftIn(cloud)).toEqual({ machines: 3, groups: 1 });
  },
);

test("launch files that a crash left empty are skipped, and tags find the machines", async () => {
  await using fixture = await openFixture({});
  const { cloud, runtime } = fixture;
  // The new create begins before the API shows the machines by their tags.
  cloud.behaviour.change({ pendingMs: 800, tagsVisibleAfterMs: 4000 });
  await createAndKill(fixture, counted("DescribeInstances", 3));
  cloud.behaviour.change({ tagsVisibleAfterMs: 0 });
  const [folder = ""] = await foldersOf(runtime);
  const launches = join(stateFolder(runtime.environment), "cloud", region, folder, "launches");
  const names = await readdir(launches);
  expect(names.length).toBeGreaterThan(0);
  for (const name of names) await truncate(join(launches, name));
  const backend = await fixture.open(region);
  const cluster = await fixture.create(backend, fixture.request("default", {}), neverAborted);
  expect(cluster.state).toBe("running");
  expect(await foldersOf(runtime)).toEqual([basename(cluster.directory)]);
  expect(leftIn(cloud)).toEqual({ machines: 3, groups: 1 });
});

test("a launch whose process died before the answer is repeated, and its machines are terminated", async () => {
  await using fixture = await openFixture({});
  const { cloud } = fixture;
  // The machines are launched, and the process dies before it gets the answer.
  cloud.faults.add({ action: "RunInstances", when: "after", times: 2, delayMs: 1000 });
  await createAndKill(fixture, () => cloud.instances().length === 3);
  const backend = await fixture.open(region);
  const request = fixture.request("default", { counts: { master: 1, agent: 0, public_agent: 0 } });
  const cluster = await fixture.create(backend, request, neverAborted);
  expect(cluster.nodes).toHaveLength(1);
  expect(leftIn(cloud)).toEqual({ machines: 1, groups: 1 });
  // With their client tokens, the repeated requests launched nothing new.
  expect(cloud.instances()).toHaveLength(4);
});

test("a create that is still running is not mistaken for remains", async () => {
  await using fixture = await openFixture({});
  const { cloud } = fixture;
  const backend = await fixture.open(region);
  const going = Promise.withResolvers<void>();
  const end = Promise.withResolvers<void>();
  const first = fixture.request("default", {
    complete: async () => {
      going.resolve();
      await end.promise;
    },
  });
  const second = fixture.request("default", {});
  const provisioning = fixture.create(backend, first, neverAborted);
  await going.promise;
  const refusal = await fixture
    .create(backend, second, neverAborted)
    .catch((error: unknown) => error);
  expect(refusal).toMatchObject({ id: "cluster-exists" });
  end.resolve();
  expect((await provisioning).state).toBe("running");
  expect(leftIn(cloud)).toEqual({ machines: 3, groups: 1 });
});
