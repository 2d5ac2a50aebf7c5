/**
 * Instances that somebody else launched in the account, with our tags, whose values contain paths and configuration.
 */
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { chmod, mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Attacker, attackerIn } from "./support/attacker.ts";
import { startTestCloud } from "./support/test-cloud.ts";
import type { TestCloud } from "./support/test-cloud.ts";

const state: { cloud?: TestCloud; attacker?: Attacker } = {};
const cloud = (): TestCloud => state.cloud!;
const inFolder = (...parts: readonly string[]): string => join(cloud().folder, ...parts);

/** As create would give them to the only node of the cluster `default`. */
const tags = {
  "cluster-id": "default",
  "creation-id": "0123456789abcdef",
  role: "master",
  "index-base": "0",
  counts: "master=1 agent=0 public_agent=0",
  variant: "oss",
  distribution: "debian-12",
  "ssh-user": "admin",
  "expires-at": new Date(Date.now() + 3_600_000).toISOString(),
};

beforeAll(async () => {
  state.cloud = await startTestCloud("in-process");
  state.attacker = attackerIn(state.cloud);
  await writeFile(inFolder("artifact.sh"), "#!/bin/bash\n# variant: oss\n");
});
beforeEach(async () => {
  await cloud().control("reset", {});
});
afterAll(async () => {
  await state.cloud?.[Symbol.asyncDispose]();
});

async function launch(changed: Readonly<Record<string, string>>): Promise<string> {
  const id = await state.attacker!.launch({ ...tags, ...changed });
  const limitMs = Date.now() + 10_000;
  while (
    !(await cloud().machines()).some(
      (machine) => machine.instanceId === id && machine.state === "running",
    )
  ) {
    if (Date.now() > limitMs) throw new Error(`${id} does not run`);
    await Bun.sleep(50);
  }
  // Tags of new machines are not seen at once.
  await Bun.sleep(100);
  return id;
}

/** A folder of the user's own, with a key, that others may read. */
async function makeVictim(...parts: readonly string[]): Promise<string> {
  const path = inFolder("state", "cluster-e2e", ...parts);
  await mkdir(path, { recursive: true });
  await chmod(path, 0o755);
  await writeFile(join(path, "id_ed25519"), "the user's own key\n", { mode: 0o600 });
  await writeFile(join(path, "known_hosts"), "", { mode: 0o644 });
  return path;
}

/** Names, modes, times and contents. */
async function look(path: string): Promise<unknown> {
  const names = (await readdir(path)).toSorted();
  const files = names.map(async (name) => {
    const { mode, mtimeMs } = await stat(join(path, name));
    return { name, mode, mtimeMs, text: await readFile(join(path, name), "utf8") };
  });
  return { mode: (await stat(path)).mode, files: await Promise.all(files) };
}

const commands: readonly (readonly string[])[] = [
  ["inspect"],
  ["inspect", "--output", "ssh-config"],
  ["run", "true"],
  ["logs"],
  ["wait"],
  ["web"],
];

/** No command may know the cluster, print what the attacker wrote, or start what the attacker named. */
async function expectNoCluster(marker: string): Promise<void> {
  for (const words of commands) {
    const ran = await cloud().run(words);
    expect([...words, ran.status, ran.stdout]).toEqual([...words, 3, ""]);
    expect(ran.stderr).not.toContain("ProxyCommand");
    expect(ran.stderr).not.toContain("/.ssh");
  }
  for (const words of [
    ["list", "--quiet"],
    ["list", "--all-regions", "--quiet"],
  ])
    expect(await cloud().run(words)).toMatchObject({ status: 0, stdout: "" });
  expect(await Bun.file(marker).exists()).toBe(false);
}

// Shows R133.
test("a creation id that leads out of the state folder is no cluster's, and nothing there is read or changed", async () => {
  const victim = await makeVictim(".ssh");
  const before = await look(victim);
  await launch({ "creation-id": "x/../../../.ssh" });
  await expectNoCluster(inFolder("started"));
  expect(await look(victim)).toEqual(before);
});

// Shows R133.
test("a user that would add lines to ssh's configuration starts nothing, also where the key is here", async () => {
  const marker = inFolder("started");
  const victim = await makeVictim("cloud", "us-west-2", "default-0123456789abcdef");
  const before = await look(victim);
  await launch({
    "ssh-user": `admin\n  ProxyCommand touch ${marker}\n  LocalCommand touch ${marker}`,
  });
  await expectNoCluster(marker);
  expect(await look(victim)).toEqual(before);
});

test.each([
  ["cluster-id", "../../default"],
  ["creation-id", "0123456789ABCDEF"],
  ["role", "master_0/../.."],
  ["index-base", "1e3"],
  ["counts", "master=99999999999"],
  ["variant", "oss\u001B[2J"],
  ["distribution", "debian-12\u001B]0;owned\u0007"],
  ["web-ui", "javascript"],
  ["ssh-user", "-oProxyCommand=id"],
  ["expires-at", "tomorrow"],
])(
  "an instance whose %s is %j is named by -v and by doctor, and is in nobody's way",
  async (name, value) => {
    const id = await launch({ [name]: value });
    const said = `instance ${id}: its tag cluster-e2e:${name} is malformed`;
    const listed = await cloud().run(["list", "-v"]);
    expect({ status: listed.status, stdout: listed.stdout }).toEqual({ status: 0, stdout: "" });
    expect(listed.stderr).toContain(said);
    const doctor = await cloud().run(["doctor"]);
    expect(doctor.stdout.replaceAll(/\s+/g, " ")).toContain(said);
    const shown = listed.stderr + doctor.stdout + doctor.stderr;
    expect(shown.replaceAll(/[\n\t]/g, " ")).not.toMatch(/\p{Cc}/u);
    const words = [
      "create",
      "--dry-run",
      "--variant",
      "oss",
      "--linux-distribution",
      "debian-12",
      inFolder("artifact.sh"),
    ];
    const planned = await cloud().run(words);
    expect({ status: planned.status, stderr: planned.status === 0 ? "" : planned.stderr }).toEqual({
      status: 0,
      stderr: "",
    });
    expect(
      (await cloud().machines()).map(({ instanceId, state: now }) => [instanceId, now]),
    ).toEqual([[id, "running"]]);
  },
);

// Shows R135.
test("a cluster's folder that is a link to another place is not used", async () => {
  const victim = await makeVictim("elsewhere");
  const folder = inFolder("state", "cluster-e2e", "cloud", "us-west-2");
  await mkdir(folder, { recursive: true });
  await Bun.$`rm -rf ${folder}/default-0123456789abcdef && ln -s ${victim} ${folder}/default-0123456789abcdef`.quiet();
  const before = await look(victim);
  await launch({});
  for (const words of commands) {
    const ran = await cloud().run(words);
    expect([...words, ran.status, ran.stdout]).toEqual([...words, 5, ""]);
    expect(ran.stderr).toContain("is a symbolic link");
  }
  expect(await look(victim)).toEqual(before);
});
