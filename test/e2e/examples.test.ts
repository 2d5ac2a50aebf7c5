/**
 * The example platforms, from nothing but the program and Docker: their packages are put into node images that the program
 * builds. A base built with debootstrap has the name that its recipe uses, so no registry is needed.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { chmod } from "node:fs/promises";
import { join } from "node:path";
import { longEnough } from "../support/long-enough.ts";
import { executablePath } from "./support/executable.ts";
import { installsOnNodes } from "./support/installs-on-nodes.ts";
import { nameDebianBase } from "./support/published-debian.ts";
import { missingLine, triedExamples } from "./support/readme.ts";
import { tryShell } from "./support/shell.ts";
import { docker, startTestContainers } from "./support/test-containers.ts";
import type { TestContainers } from "./support/test-containers.ts";

const releases = ["12", "13"] as const;
/** A test that builds a node image takes a minute or two: each runs on one release, or with CLUSTER_E2E_EXAMPLES=all on both. */
const releasesFor = (usual: (typeof releases)[number]): readonly string[] =>
  process.env["CLUSTER_E2E_EXAMPLES"] === "all" ? releases : [usual];
const limitMs = 900_000;

const state: { containers?: TestContainers; before: ReadonlySet<string> } = { before: new Set() };
const containers = (): TestContainers => state.containers!;

/** Names of Docker's images that these tests could make. */
const images = async (): Promise<readonly string[]> =>
  (await docker(["images", "--format={{.Repository}}:{{.Tag}}"]))
    .split("\n")
    .filter((name) =>
      /^localhost\/cluster-e2e-node:debian-1[23]-folder-|^debian:1[23]$/.test(name),
    );

beforeAll(async () => {
  state.containers = await startTestContainers();
  state.before = new Set(await images());
  await Promise.all(releases.map(nameDebianBase));
}, limitMs);

afterAll(async () => {
  await state.containers?.[Symbol.asyncDispose]();
  // bring-your-own.test.ts, which may run at the same time, uses such images too.
  for (const name of await images())
    if (!state.before.has(name)) await docker(["rmi", name]).catch(() => {});
});

interface Cluster {
  readonly id: string;
  /** Runs words on a node, by default on the first master, and returns its output. */
  run(words: readonly string[], node?: string): Promise<string>;
}

/** Creates a cluster of an example, which is ready, runs the steps on it and destroys it. */
async function withExample(
  name: string,
  release: string,
  words: readonly string[],
  steps: (cluster: Cluster) => Promise<void>,
): Promise<void> {
  const id = containers().id(`${name}-${release}`);
  const options = [
    "--linux-distribution",
    `debian-${release}`,
    "--wait",
    "--timeout",
    "10m",
    "-c",
    id,
  ];
  await nameDebianBase(release);
  const created = await containers().run(["create", ...options, ...words, `example:${name}`], {
    limitMs,
  });
  expect({ status: created.status, stdout: created.stdout }, created.stderr).toEqual({
    status: 0,
    stdout: `${id}\n`,
  });
  // They are in the image.
  expect(installsOnNodes(created.stderr)).toEqual([]);
  const run = async (command: readonly string[], node = "master_0"): Promise<string> => {
    const ran = await containers().run(["run", "-c", id, "--node", node, ...command]);
    expect(ran.status, ran.stdout + ran.stderr).toBe(0);
    return ran.stdout.trim();
  };
  await steps({ id, run });
  expect(await containers().run(["destroy", "-c", id])).toMatchObject({
    status: 0,
    stdout: `${id}\n`,
  });
}

/** Runs the recipes for a platform on the page "Test a platform", word by word. They name no cluster, so a program of that name adds the id. */
async function tryRecipes(platform: string, id: string): Promise<void> {
  const { folder, environment } = containers();
  const bin = join(folder, `bin-${id}`);
  const program = join(bin, "cluster-container");
  const line = `exec '${executablePath("cluster-container")}' "$command" -c ${id} "$@"`;
  await Bun.write(program, `#!/bin/sh\ncommand=$1\nshift\n${line}\n`);
  await chmod(program, 0o755);
  const own = { ...environment, PATH: `${bin}:${process.env["PATH"]}`, COLUMNS: "10000" };
  const variables = Object.entries(own).map(([name, value]) => `${name}=${value}`);
  const recipes = await triedExamples("src/cluster/faults/README.md", `tried with ${platform}`);
  expect(recipes).not.toEqual([]);
  for (const { lines, status: expected, output: shown } of recipes) {
    const { status, output } = await tryShell(
      'exec env "$@"',
      ["sh", ...variables, "sh", "-euc", lines],
      folder,
    );
    expect({ status, missing: missingLine(shown.trim(), output) }, output).toEqual({
      status: expected,
      missing: undefined,
    });
  }
}

/** The example etcd as a second version, with another setting. */
async function nextEtcd(release: string): Promise<string> {
  const folder = join(containers().folder, `etcd-${release}`);
  await containers().run(["examples", "etcd", folder]);
  await Bun.$`sed -i 's/"1.0"/"2.0"/' ${folder}/platform.yaml`;
  await Bun.$`sed -i 's/^ETCD_NAME=/ETCD_SNAPSHOT_COUNT=5000\n&/' ${folder}/install`;
  return folder;
}

/** Shell that writes values and looks for a leader until a file appears, and prints what was missing, and how often it looked. */
const watchEtcd = `
export ETCDCTL_API=3
all=$(echo $CLUSTER_MASTERS | sed "s,[^ ]*,http://&:2379,g; s/ /,/g")
rounds=0
until [ -e /run/watch-ends ]; do
  rounds=$((rounds + 1))
  etcdctl --endpoints $all --command-timeout 8s put watched $rounds >/dev/null || echo "no write in round $rounds"
  tries=0
  # While the leader restarts, the others elect one, which takes a second.
  until etcdctl --endpoints $all --command-timeout 2s endpoint status 2>/dev/null | grep -q ", true,"; do
    tries=$((tries + 1))
    [ $tries -lt 5 ] || { echo "no leader in round $rounds"; break; }
    sleep 1
  done
  sleep 0.1
done
echo "rounds $rounds"
`;

test.each(releasesFor("12"))(
  "slurm on Debian %s: a job runs on both agents at once, the page lists them, and a paused agent is down",
  async (release) => {
    await withExample("slurm", release, [], async ({ id, run }) => {
      expect((await run(["srun", "-N2", "hostname"])).split("\n").toSorted()).toEqual([
        "agent-0",
        "agent-1",
      ]);
      expect(await run(["./slurm-test"])).toBe("agent-0\nagent-1");
      const page = await fetch((await containers().inspect(id)).webUi);
      expect(page.status).toBe(200);
      expect(await page.text()).toMatch(/agent-0 .* idle[^]*agent-1 .* idle/);
      await tryRecipes("slurm", id);
      expect(await run(["./slurm-test"])).toBe("agent-0\nagent-1");
    });
  },
);

test.each(releasesFor("13"))(
  "etcd on Debian %s: one of three masters leads, all of them read a value, it goes on without one of them, and is upgraded while writes succeed",
  async (release) => {
    await withExample("etcd", release, [], async ({ id, run }) => {
      expect(await run(["./etcd-test"])).toBe(
        "3 of 3 members answer, and one of them is the leader\nthe value written on master_0 is read on each of them",
      );
      await run(["systemctl stop etcd"], "master_2");
      expect(await run(["./etcd-test", "1"], "master_1")).toContain(
        "2 of 3 members answer, and one of them is the leader",
      );
      await longEnough(8_000, async (waitMs) => {
        const words = ["wait", "-c", id, "--timeout", `${waitMs / 1000}s`];
        const waited = await containers().run(words);
        expect(waited.status).not.toBe(0);
        return waited.stderr.includes("master_2: its check says: etcd is inactive");
      });
      const next = await nextEtcd(release);
      const refused = await containers().run(["upgrade", "-c", id, next]);
      expect(refused).toMatchObject({ status: 1, stdout: "" });
      expect(refused.stderr).toContain("Version 1.0: master_0, master_1, master_2.");
      await run(["systemctl start etcd"], "master_2");
      expect(await run(["./etcd-test"], "master_2")).toContain("3 of 3 members answer");

      const [put, get] = ["put kept value", "get --print-value-only kept"].map(
        (words) => `ETCDCTL_API=3 etcdctl ${words}`,
      );
      await run([put!]);
      const watching = run([watchEtcd]);
      // Each member's upgrade requires that all others are up.
      const upgraded = await containers().run(["upgrade", "--output", "json", "-c", id, next]);
      expect(upgraded.status, upgraded.stderr).toBe(0);
      expect(JSON.parse(upgraded.stdout)).toMatchObject({
        version: "2.0",
        upgraded: ["master_0", "master_1", "master_2"],
      });
      await run(["touch /run/watch-ends"]);
      expect(await watching).toMatch(/^rounds [1-9][0-9]+$/);
      expect(await run([get!], "master_1")).toBe("value");
      expect(await run(["tr '\\0' '\\n' </proc/$(pidof etcd)/environ | grep SNAPSHOT"])).toBe(
        "ETCD_SNAPSHOT_COUNT=5000",
      );
      expect(await run(["./etcd-test"])).toContain("3 of 3 members answer");
    });
  },
);

test.each(releasesFor("12"))(
  "pacemaker on Debian %s: all nodes are online with a quorum, and the resource moves when its node stops or loses its power",
  async (release) => {
    await withExample("pacemaker", release, [], async ({ id, run }) => {
      const locate = async (): Promise<readonly string[]> =>
        (await run(["./pacemaker-test"])).split("\n");
      const [, first] = await locate();
      await tryRecipes("pacemaker", id);
      const [status, place = ""] = await locate();
      expect(status).toBe("3 of 3 nodes are online, with a quorum; the resource runs on");
      expect(place).not.toBe(first!);
      expect(place).toMatch(/^master-[012]$/);
      const stopped = place.replace("-", "_");
      const other = stopped === "master_1" ? "master_2" : "master_1";
      await run(["systemctl stop corosync"], stopped);
      const [left, moved] = (await run(["./pacemaker-test", "1"], other)).split("\n");
      expect(left).toBe("2 of 3 nodes are online, with a quorum; the resource runs on");
      expect(moved).toMatch(/^master-[012]$/);
      expect(moved).not.toBe(place);
    });
  },
);

test.each(releasesFor("13"))(
  "swarm on Debian %s: managers and workers have joined, and a service has a replica on every worker",
  async (release) => {
    await withExample(
      "swarm",
      release,
      ["--masters", "3", "--public-agents", "1"],
      async ({ id, run }) => {
        const lines = (await run(["./swarm-test"])).split("\n");
        expect(lines.filter((line) => line.includes("is a manager"))).toHaveLength(3);
        const workers = ["agent-0", "agent-1", "public-agent-0"];
        expect(lines.slice(3)).toEqual(workers.map((worker) => `${worker} runs a replica`));
        const web = await containers().run(["web", "-c", id]);
        expect(web.stdout + web.stderr).toContain("has no web UI");
      },
    );
  },
);
