/**
 * Somebody else in the account copies the tags of a cluster to machines and groups of his own, or changes the cluster's. The computer that created the
 * cluster isn't misled; another opens and changes nothing where it can't be sure.
 */
import { expect, test } from "bun:test";
import { chmod, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { until } from "../support/until.ts";
import { type Attacker, attackerIn } from "./support/attacker.ts";
import { createWords, describeOnBench, type ErrorBench } from "./support/error-cases.ts";
import { temporaryFolder } from "./support/temporary-folder.ts";

interface CopiedMachine extends AsyncDisposable {
  readonly id: string;
}

/** The tags of the cluster's master, by names without our prefix. */
async function masterTags({ base, cloud }: ErrorBench): Promise<Readonly<Record<string, string>>> {
  const { tags } = (await cloud.machines()).find(
    ({ instanceId }) => instanceId === base.nodes[0]!.id,
  )!;
  const own = Object.entries(tags).filter(([key]) => key.startsWith("cluster-e2e:"));
  return Object.fromEntries(own.map(([key, value]) => [key.replace("cluster-e2e:", ""), value]));
}

async function launch(
  bench: ErrorBench,
  changes: Readonly<Record<string, string>>,
  place?: Parameters<Attacker["launch"]>[1],
): Promise<CopiedMachine> {
  const attacker = attackerIn(bench.cloud);
  const id = await attacker.launch({ ...(await masterTags(bench)), ...changes }, place);
  const state = async () =>
    (await bench.cloud.machines()).find(({ instanceId }) => instanceId === id)?.state;
  await until("it runs", async () => (await state()) === "running");
  // Tags of new machines are not seen at once.
  await Bun.sleep(100);
  return {
    id,
    [Symbol.asyncDispose]: async () => {
      await attacker.terminate(id);
      await until("it is gone", async () => (await state()) === undefined);
    },
  };
}

/** Launches a machine of another creation that looks older than the cluster. */
async function launchOlder(bench: ErrorBench): Promise<CopiedMachine> {
  await bench.cloud.control("clock", { skewMs: -120_000 });
  try {
    return await launch(bench, { "creation-id": "fedcba9876543210", "web-ui": "http" });
  } finally {
    await bench.cloud.control("clock", { skewMs: 0 });
  }
}

/** Runs `web` with a browser that notes what it opens. */
async function openWeb({ cloud }: ErrorBench, environment: Readonly<Record<string, string>>) {
  await using folder = await temporaryFolder();
  const opener = join(folder.path, "xdg-open");
  await writeFile(opener, `#!/bin/sh\necho "$1" >${folder.path}/opened\n`);
  await chmod(opener, 0o755);
  const PATH = `${folder.path}:${process.env["PATH"]}`;
  const ran = await cloud.run(["web", "-c", "base"], { environment: { ...environment, PATH } });
  if (ran.status === 0)
    await until("it is opened", async () => Bun.file(join(folder.path, "opened")).exists());
  return { ran, opened: await readFile(join(folder.path, "opened"), "utf8").catch(() => "") };
}

describeOnBench("somebody else in the account", (bench) => {
  const elsewhere = () => ({ XDG_STATE_HOME: join(bench().cloud.folder, "elsewhere") });

  // Shows R133.
  test("an older machine with the cluster's id takes over neither inspect nor web", async () => {
    await using foreign = await launchOlder(bench());
    const { base, cloud } = bench();
    const inspected = await cloud.inspect("base");
    expect(inspected.nodes.map(({ id }) => id)).toEqual([base.nodes[0]!.id]);
    expect(JSON.stringify(inspected)).not.toContain(foreign.id);
    const { ran, opened } = await openWeb(bench(), {});
    const url = `https://${base.nodes[0]!.publicAddress}/`;
    expect([ran.status, ran.stdout, opened], ran.stderr).toEqual([0, `${url}\n`, `${url}\n`]);
  });

  // Shows R133.
  test("a machine with the cluster's creation id and another number is not among its nodes", async () => {
    await using foreign = await launch(bench(), { "index-base": "5" });
    const { base, cloud } = bench();
    expect((await cloud.inspect("base")).nodes.map(({ id }) => id)).toEqual([base.nodes[0]!.id]);
    expect((await cloud.run(["list", "-v"])).stderr).toContain(
      `instance ${foreign.id}: its tags name a cluster of this computer, which did not launch it`,
    );
  });

  // Shows R133.
  test("web opens nothing on a computer without the cluster's keys, and says what to do", async () => {
    await using _foreign = await launchOlder(bench());
    const { ran, opened } = await openWeb(bench(), elsewhere());
    expect([ran.status, ran.stdout, opened]).toEqual([5, "", ""]);
    expect(ran.stderr).toMatch(/cluster-cloud export.*cluster-cloud import.*\[key-missing\]/s);
  });

  // Shows R108, R133.
  test("a changed deadline in a tag does not let the next create end the cluster", async () => {
    const { base, cloud } = bench();
    const [{ id } = { id: "" }] = base.nodes;
    const { "expires-at": former } = await masterTags(bench());
    const attacker = attackerIn(cloud);
    await attacker.tag(id, { "expires-at": "2020-01-01T00:00:00Z" });
    // It ends after the step that removes what expired clusters left.
    await cloud.control("faults", {
      action: "RunInstances",
      when: "before",
      code: "UnauthorizedOperation",
    });
    const ran = await cloud.run(createWords("other"), { cwd: cloud.folder });
    expect(ran.stderr).toContain("[not-permitted]");
    await attacker.tag(id, { "expires-at": former! });
    const machines = await cloud.machines();
    expect(machines.map(({ instanceId, state }) => [instanceId, state])).toEqual([[id, "running"]]);
  });

  // Shows R117.
  test("admit changes only the group that the cluster was launched in, and nothing where that is not known", async () => {
    const { cloud } = bench();
    const range = "192.0.2.0/24";
    const attacker = attackerIn(cloud);
    const [{ groupId: own } = { groupId: "" }] = (await cloud.control("groups")) as readonly {
      groupId: string;
    }[];
    expect((await cloud.run(["admit", "-c", "base", range])).status).toBe(0);
    const twin = await attacker.copyGroup(own, range);
    {
      await using _foreign = await launch(bench(), { "index-base": "5" }, twin);
      const refused = await cloud.run(["admit", "-c", "base", "--remove", range], {
        environment: elsewhere(),
      });
      expect([refused.status, refused.stdout]).toEqual([1, ""]);
      for (const groupId of [own, twin.groupId]) {
        expect(refused.stderr).toContain(groupId);
        expect(await attacker.rangesOf(groupId)).toContain(range);
      }
      const removed = await cloud.run(["admit", "-c", "base", "--remove", range]);
      expect([removed.status, removed.stdout], removed.stderr).toEqual([0, `${range}\n`]);
      expect(await attacker.rangesOf(own)).not.toContain(range);
      expect(await attacker.rangesOf(twin.groupId)).toEqual([range]);
    }
    await attacker.deleteGroup(twin.groupId);
  });
});
