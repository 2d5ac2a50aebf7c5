/** Random faults on etcd while a program writes to it: what it acknowledged stays, and the report names each fault. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { nameDebianBase } from "./support/published-debian.ts";
import { type TestContainers, docker, startTestContainers } from "./support/test-containers.ts";

const limitMs = 900_000;
const state: { containers?: TestContainers; before: ReadonlySet<string> } = { before: new Set() };
const containers = (): TestContainers => state.containers!;
const id = (): string => containers().id("chaos");
const words = (line: string): readonly string[] => [...line.split(" "), "-c", id()];
const succeed = async (all: readonly string[]) => {
  const ended = await containers().run(all, { limitMs });
  expect(ended.status, ended.stdout + ended.stderr).toBe(0);
  return ended;
};

/** Names of Docker's images that this test could make. */
const images = async (): Promise<readonly string[]> =>
  (await docker(["images", "--format={{.Repository}}:{{.Tag}}"]))
    .split("\n")
    .filter((name) => /^localhost\/cluster-e2e-node:debian-12-folder-|^debian:12$/.test(name));

beforeAll(async () => {
  state.containers = await startTestContainers();
  state.before = new Set(await images());
  await nameDebianBase("12");
  await succeed(words("create --wait --timeout 14m --linux-distribution debian-12 example:etcd"));
}, limitMs);

afterAll(async () => {
  await state.containers?.run(["destroy", ...words("--yes")]);
  await state.containers?.[Symbol.asyncDispose]();
  // Other files that may run at the same time use such images too.
  for (const name of await images())
    if (!state.before.has(name)) await docker(["rmi", name]).catch(() => {});
});

test("a member that is cut off notices it, and the cluster recovers", async () => {
  const begun = await succeed([
    ...words("fault partition --between master_2 --until-node master_2 --for 2m"),
    "--until",
    "! etcdctl endpoint health",
  ]);
  expect(begun.stderr).toContain("; the platform shows it after");
  expect((await succeed(words("fault heal"))).stderr).toContain("; every node's check passes");
});

test("no acknowledged write is lost in random faults, and the report shows each of them", async () => {
  const script = join(import.meta.dir, "acknowledged-writes.sh");
  await succeed(words(`cp ${script} master_0:/root/acknowledged-writes`));
  const chaos = containers().start(
    words(
      "fault random --seed 7 --every 20s --for 2m --kinds partition,process --unit etcd --recover 2m",
    ),
    { limitMs },
  );
  await chaos.said("The fault shows");
  const written = await succeed([
    ...words("run --node master_0"),
    "sh",
    "/root/acknowledged-writes",
    "110",
  ]);
  expect(written.stdout).toMatch(/^[1-9]\d* of \d+ writes were acknowledged, and none is lost\n$/);
  const ended = await chaos.ended;
  expect(ended.status, ended.stderr).toBe(0);
  const plan = ended.stdout.trim().split("\n").slice(1);
  expect(plan).toHaveLength(6);
  const page = join(containers().folder, "report.html");
  await succeed(words(`report ${page}`));
  const html = await readFile(page, "utf8");
  for (const [, name] of ended.stderr.matchAll(/The fault shows \((.*?)\):/g))
    expect(html).toContain(name!);
});
