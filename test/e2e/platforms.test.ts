/**
 * Four platforms that people run, from Debian's packages and as their manuals say: each goes through failover, a partition, a snapshot, a copy and an
 * upgrade. What was written while most nodes were together must be there at the end.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { repository } from "./support/executable.ts";
import { nameDebianBase } from "./support/published-debian.ts";
import { startTestContainers } from "./support/test-containers.ts";
import type { TestContainers } from "./support/test-containers.ts";

interface Platform {
  readonly name: string;
  /** Shell for a node that begins with an empty store. */
  readonly begin: string;
  /** Shell that ends well only if the platform has accepted the value. */
  put(value: string): string;
  /** Shell that prints all values, one a line. */
  readonly get: string;
  /** Shell that prints the node that leads; by default the first is the one to lose. */
  readonly leader?: string;
  /** Shell that its operators run on a node that doesn't join again after all nodes went down at once. */
  readonly recover?: string;
  /** Shell that prints a line if the upgrade has changed what runs. */
  readonly upgraded: string;
}

const platforms: readonly Platform[] = [
  {
    name: "patroni",
    begin: "./sql 'CREATE TABLE kept (value text)'",
    put: (value) => `./sql "INSERT INTO kept VALUES ('${value}')"`,
    get: "./sql 'SELECT value FROM kept ORDER BY 1'",
    leader: "./leader",
    // PostgreSQL can wait for ever for the log of a former leader; Patroni looks at that only when it starts. Who leads or
    // follows is left alone: its restart could begin the same again.
    recover:
      "curl --silent --max-time 5 http://$CLUSTER_PRIVATE_ADDRESS:8008/patroni | jq --exit-status '.state == \"running\"' || systemctl restart patroni",
    upgraded: "./sql 'SHOW log_min_duration_statement' | grep 5s",
  },
  {
    name: "galera",
    begin:
      "./sql 'CREATE DATABASE kept; CREATE TABLE kept.kept (id int AUTO_INCREMENT PRIMARY KEY, value text)'",
    put: (value) => `./sql "INSERT INTO kept.kept (value) VALUES ('${value}')"`,
    get: "./sql 'SELECT value FROM kept.kept ORDER BY 1'",
    upgraded: "./sql 'SELECT @@innodb_buffer_pool_size' | grep 50331648",
  },
  {
    name: "rabbitmq",
    begin: "./queue get",
    put: (value) => `./queue put ${value}`,
    get: "./queue get | sort",
    upgraded:
      "rabbitmqctl --quiet eval 'rabbit_disk_monitor:get_disk_free_limit().' | grep 60000000",
  },
  {
    name: "glusterfs",
    begin: "mkdir /mnt/volume/kept && setfattr -n user.origin -v test /mnt/volume/kept",
    put: (value) => `timeout 60 sh -c 'echo ${value} >/mnt/volume/kept/${value}'`,
    get: "timeout 60 sh -c 'cat /mnt/volume/kept/*'",
    upgraded: "mountpoint /mnt/volume",
  },
];

const limitMs = 1_200_000;
const state: { containers?: TestContainers } = {};
const containers = (): TestContainers => state.containers!;

beforeAll(async () => {
  state.containers = await startTestContainers();
}, limitMs);

afterAll(async () => {
  await state.containers?.[Symbol.asyncDispose]();
});

/** Runs the program's words on a cluster, which must end well, and returns what they print. */
async function on(id: string, words: readonly string[]): Promise<string> {
  const [command = "", ...rest] = words;
  const ended = await containers().run([command, "-c", id, ...rest], { limitMs });
  expect(ended.status, `${words.join(" ")}\n${ended.stdout}${ended.stderr}`).toBe(0);
  return ended.stdout.trim();
}

const shell = async (id: string, node: string, line: string): Promise<string> =>
  on(id, ["run", "--node", node, line]);

async function ready({ recover }: Platform, id: string): Promise<void> {
  for (const _attempt of recover === undefined ? [] : [1, 2, 3, 4, 5]) {
    const waited = await containers().run(["wait", "-c", id, "--timeout", "2m"], { limitMs });
    if (waited.status === 0) return;
    await on(id, ["run", "--node", "all", recover!]);
  }
  await on(id, ["wait", "--timeout", "8m"]);
}

/** Writes on a node that is among the majority, again and again until the platform has moved there. */
async function put(platform: Platform, id: string, node: string, value: string): Promise<void> {
  await shell(id, node, `until ${platform.put(value)}; do sleep 1; done >/dev/null 2>&1`);
}

const others = (node: string): readonly string[] =>
  ["master_0", "master_1", "master_2"].filter((other) => other !== node);

async function leaderOf(platform: Platform, id: string): Promise<string> {
  return platform.leader === undefined ? "master_0" : shell(id, "master_0", platform.leader);
}

/** A node that has come back may still be catching up with the others. */
async function expectValues(
  platform: Platform,
  id: string,
  node: string,
  expected: readonly string[],
): Promise<void> {
  const read = `values=$(${platform.get})`;
  const isThere = `[ "$(printf '%s\\n' "$values" | wc -l)" -ge ${expected.length} ]`;
  const loop = `for try in $(seq 60); do ${read} && ${isThere} && break; sleep 2; done; printf '%s\\n' "$values"`;
  expect((await shell(id, node, loop)).split("\n")).toEqual([...expected]);
}

test.each(platforms)(
  "$name goes on without a node, keeps to the majority of a partition, and lives on in snapshots, copies and upgrades",
  async (platform) => {
    const id = containers().id(platform.name);
    const folder = join(repository, "test", "platforms", platform.name);
    await nameDebianBase("12");
    await on(id, ["create", "--wait", "--timeout", "15m", folder]);
    await shell(id, "master_0", platform.begin);
    await put(platform, id, "master_0", "begun");

    const lost = await leaderOf(platform, id);
    const [left = "", other = ""] = others(lost);
    await on(id, ["node", "stop", "--force", lost]);
    await put(platform, id, left, "failover");
    await on(id, ["node", "start", lost]);
    await ready(platform, id);
    await expectValues(platform, id, lost, ["begun", "failover"]);

    const cut = await leaderOf(platform, id);
    const [majority = ""] = others(cut);
    await on(id, ["fault", "partition", "--between", cut, "--for", "20m"]);
    await put(platform, id, majority, "majority");
    const refused = await containers().run([
      "run",
      "-c",
      id,
      "--node",
      cut,
      `timeout 30 ${platform.put("minority")}`,
    ]);
    expect(refused.status, refused.stdout + refused.stderr).not.toBe(0);
    await on(id, ["fault", "heal"]);
    await ready(platform, id);

    const kept = ["begun", "failover", "majority"];
    await on(id, ["snapshot", "create", "before"]);
    await put(platform, id, other, "later");
    await on(id, ["snapshot", "restore", "before"]);
    await ready(platform, id);
    await expectValues(platform, id, lost, kept);

    const copy = containers().id(`${platform.name}-copy`);
    await on(copy, ["create", "--from", `${id}:before`]);
    await ready(platform, copy);
    await put(platform, copy, "master_1", "zopy");
    await expectValues(platform, copy, "master_2", [...kept, "zopy"]);
    await on(copy, ["destroy"]);

    const next = join(containers().folder, platform.name);
    await Bun.$`cp -R ${folder} ${next} && sed -i 's/"1.0"/"2.0"/' ${next}/platform.yaml`;
    await on(id, ["upgrade", next]);
    await ready(platform, id);
    expect(await shell(id, "master_1", platform.upgraded)).not.toBe("");
    await expectValues(platform, id, "master_1", kept);
    await on(id, ["destroy", "--yes"]);
  },
  limitMs,
);
