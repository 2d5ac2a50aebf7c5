/** A platform that is a folder, on containers: it needs no artifact and no variant, and every command works with it. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { cp, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { longEnough } from "../support/long-enough.ts";
import { until } from "../support/until.ts";
import { nodeImage, startTestContainers } from "./support/test-containers.ts";
import type { TestContainers } from "./support/test-containers.ts";

const state: { containers?: TestContainers; platform?: string } = {};
const containers = (): TestContainers => state.containers!;
const platform = (): string => state.platform!;
const id = (): string => containers().id("meter");

beforeAll(async () => {
  state.containers = await startTestContainers();
  state.platform = await copyOfPlatform("meter");
});

afterAll(async () => {
  await state.containers?.[Symbol.asyncDispose]();
});

async function copyOfPlatform(name: string): Promise<string> {
  const folder = join(containers().folder, name);
  await cp(join(import.meta.dir, "support", "meter"), folder, { recursive: true });
  return folder;
}

const create = (...words: readonly string[]) =>
  containers().run(["create", "--node-image", nodeImage, ...words]);
const runOn = (...words: readonly string[]) => containers().run(["run", "-c", id(), ...words]);

test("a dry run shows the platform's name and version, and its default numbers of nodes", async () => {
  const ran = await create("--dry-run", "-c", id(), platform());
  expect(ran.status, ran.stderr).toBe(0);
  expect(ran.stdout).toMatch(/^Platform +meter 1\.0$/m);
  expect(ran.stdout).toContain("3: 1 master, 2 agents, 0 public agents");
  const shown = await create("--dry-run", "--output", "json", "-c", id(), platform());
  expect(JSON.parse(shown.stdout)).toMatchObject({
    plan: { platform: { name: "meter", version: "1.0" } },
  });
});

test("numbers that the platform doesn't allow are refused, and so are options that only releases have", async () => {
  const counts = await create("--dry-run", "--agents", "3", "--public-agents", "1", platform());
  expect(counts.status).toBe(2);
  expect(counts.stderr).toContain("--agents: the platform meter allows at most 2, not 3");
  expect(counts.stderr).toContain("--public-agents: the platform meter allows at most 0, not 1");
  const none = await create("--dry-run", "--agents", "0", platform());
  expect(none.stderr).toContain("--agents: the platform meter needs at least 1, not 0");
  const words =
    "--variant oss --security-mode strict --license-key /key --wait --superuser-password x".split(
      " ",
    );
  const options = await create(
    "--dry-run",
    ...words,
    "--artifact-sha256",
    "a".repeat(64),
    platform(),
  );
  expect(options.status).toBe(2);
  const refused = [
    "--variant",
    "--security-mode",
    "--license-key",
    "--superuser-password",
    "--artifact-sha256",
  ];
  for (const name of refused)
    expect(options.stderr).toContain(
      `${name}: only releases of the platform have it, but not ${platform()}`,
    );
});

test("a dry run lists every mistake of a folder at once", async () => {
  const broken = await copyOfPlatform("broken");
  await Bun.$`chmod -x ${broken}/install && rm ${broken}/check`;
  await Bun.write(
    join(broken, "platform.yaml"),
    "name: Meter\nversion: 1\ncolour: blue\nports: [0]\n",
  );
  const ran = await create("--dry-run", "--agents", "-1", broken);
  expect(ran.status).toBe(2);
  for (const part of ["name", "version", "colour", "ports", "install", "check", "--agents"])
    expect(ran.stderr).toMatch(new RegExp(`^  .*${part}`, "m"));
  const empty = join(containers().folder, "empty");
  await Bun.$`mkdir ${empty}`;
  const other = await create("--dry-run", empty);
  expect(other.status).toBe(2);
  expect(other.stderr).toContain("platform.yaml");
});

test("create --wait installs it on all nodes, and leaves nothing packed behind", async () => {
  const extra = join(containers().folder, "extra.yaml");
  await Bun.write(extra, "colour: blue\npassword: hunter2-hunter2\n");
  const created = await create("--wait", "--extra-config", extra, "-c", id(), platform());
  expect({ status: created.status, stdout: created.stdout }, created.stderr).toEqual({
    status: 0,
    stdout: `${id()}\n`,
  });
  expect(created.stderr).toContain(`Cluster "${id()}" is ready after`);
  expect(
    (await readdir(containers().folder)).filter((name) => name.startsWith("cluster-e2e-")),
  ).toEqual([]);
});

test("the scripts' environment is that of run, which works in the folder's tests", async () => {
  expect((await runOn("./count_agents")).stdout).toBe("master_0 counts 2 agents\n");
  const names =
    "ID NODE ROLE INDEX PRIVATE_ADDRESS PUBLIC_ADDRESS MASTERS AGENTS PUBLIC_AGENTS CONFIG_FILE SECRET_FILE";
  const words = names.split(" ").map((name) => `CLUSTER_${name}`);
  const ran = await runOn(
    "--node",
    "agent_1",
    `pwd; for name in ${words.join(" ")}; do echo "$name=\${!name}"; done`,
  );
  const { nodes } = await containers().inspect(id());
  const addresses = (role: string) =>
    nodes.filter((node) => node.role === role).map((node) => node.privateAddress);
  const own = addresses("agent")[1];
  expect(ran.stdout.trim().split("\n")).toEqual([
    "/opt/cluster-platform/folder/tests",
    `CLUSTER_ID=${id()}`,
    "CLUSTER_NODE=agent_1",
    "CLUSTER_ROLE=agent",
    "CLUSTER_INDEX=1",
    `CLUSTER_PRIVATE_ADDRESS=${own}`,
    `CLUSTER_PUBLIC_ADDRESS=${own}`,
    `CLUSTER_MASTERS=${addresses("master").join(" ")}`,
    `CLUSTER_AGENTS=${addresses("agent").join(" ")}`,
    "CLUSTER_PUBLIC_AGENTS=",
    "CLUSTER_CONFIG_FILE=/opt/cluster-platform/config.json",
    "CLUSTER_SECRET_FILE=/opt/cluster-platform/secret",
  ]);
  expect(JSON.parse((await runOn("cat $CLUSTER_CONFIG_FILE")).stdout)).toEqual({
    colour: "blue",
    password: "hunter2-hunter2",
  });
  const secrets = await Promise.all(
    nodes.map(({ reference }) => runOn("--node", reference, "cat $CLUSTER_SECRET_FILE")),
  );
  expect(new Set(secrets.map(({ stdout }) => stdout)).size).toBe(1);
  expect(secrets[0]!.stdout).toMatch(/^[0-9a-f]{64}\n$/);
});

test("sync and run --sync-dir send the folder, and wait uses its check", async () => {
  const check = await Bun.file(join(platform(), "check")).text();
  await Bun.write(join(platform(), "tests", "more.sh"), "echo more\n");
  await Bun.write(join(platform(), "check"), `${check}echo the new check\nexit 1\n`);
  const synced = await containers().run(["sync", "-c", id(), platform()]);
  for (const name of ["master_0", "agent_0", "agent_1"])
    expect(synced.stdout).toMatch(new RegExp(`^${name}: \\d+ files, 2 sent`, "m"));
  await longEnough(10_000, async (limitMs) => {
    const words = ["wait", "-c", id(), "--timeout", `${limitMs / 1000}s`];
    return (await containers().run(words)).stderr.includes("the new check");
  });
  await Bun.write(join(platform(), "check"), check);
  await containers().run(["sync", "-c", id(), platform()]);
  expect((await containers().run(["wait", "-c", id()])).status).toBe(0);
  await Bun.write(join(platform(), "tests", "more.sh"), "echo even more\n");
  expect((await runOn("--sync-dir", platform(), "sh more.sh")).stdout).toBe("even more\n");
});

test("list and inspect show the platform and its version, and that it has no web UI, and so does web", async () => {
  expect((await containers().run(["list"])).stdout).toMatch(
    new RegExp(`^${id()} +running +meter 1\\.0 +1 +2 +0 `, "m"),
  );
  const inspected = await containers().run(["inspect", "-c", id()]);
  expect(inspected.stdout).toMatch(/^Platform +meter 1\.0 /m);
  expect(inspected.stdout).not.toContain("Variant");
  expect(inspected.stdout).toMatch(/^Web UI +none$/m);
  const web = await containers().run(["web", "-c", id()]);
  expect(web).toMatchObject({ status: 0, stdout: "" });
  expect(web.stderr).toContain("This platform has no web UI.");
});

test("logs has the platform's own units and files, without its secrets", async () => {
  const folder = join(containers().folder, "logs");
  expect(await containers().run(["logs", "-c", id(), "--output-dir", folder])).toMatchObject({
    status: 0,
  });
  const read = (name: string): Promise<string> => Bun.file(join(folder, name)).text();
  expect(await read("agent_0.install.log")).toContain("reading the meter on agent_0, agent, ");
  expect(await read("agent_0.platform-units.txt")).toContain("the meter runs");
  const text = await read("master_0.platform-files.txt");
  expect(text).toStartWith("==> /var/log/meter.log <==\nmasters: ");
  expect(text).toContain("the secret is ***");
  expect(text).toContain("the token is ***");
});

test("wait asks each node's check, and gives the last line of what it says", async () => {
  await runOn("--no-test-env", "--node", "agent_1", "systemctl stop meter");
  await longEnough(5_000, async (limitMs) => {
    const words = ["wait", "-c", id(), "--timeout", `${limitMs / 1000}s`];
    const waited = await containers().run(words);
    expect(waited.status).toBe(4);
    return waited.stderr.includes("agent_1: its check says: the meter of agent_1 is not running");
  });
});

test("nothing is left of a check that exceeds its limit, also not what another user runs", async () => {
  const check = '#!/bin/sh\nsu nobody -s /bin/sh -c "sleep 98765; :"\n';
  const file = "/opt/cluster-platform/folder/check";
  await runOn("--no-test-env", "--node", "agent_1", `printf '%s' '${check}' >${file}`);
  await longEnough(50_000, async (limitMs) => {
    const words = ["wait", "-c", id(), "--timeout", `${limitMs / 1000}s`];
    const waited = await containers().run(words);
    return waited.stderr.includes("agent_1: its check did not finish within 20 s");
  });
  await until("all have ended", async () => {
    const found = await runOn(
      "--no-test-env",
      "--node",
      "agent_1",
      "pgrep -fc '[s]leep 98765' || :",
    );
    return found.stdout === "0\n";
  });
});

test("destroy removes it", async () => {
  expect(await containers().run(["destroy", "-c", id()])).toMatchObject({ status: 0 });
  expect(await containers().things(id())).toEqual([]);
});

test("a packed folder is an artifact like any other; an install script that fails is shown with its last lines", async () => {
  const artifact = join(containers().folder, "meter.sh");
  expect(await containers().run(["pack", "--output-file", artifact, platform()])).toMatchObject({
    status: 0,
  });
  expect((await stat(artifact)).size).toBeGreaterThan(1000);
  const variant = await create("--dry-run", "--variant", "oss", artifact);
  expect(variant.status).toBe(2);
  expect(variant.stderr).toContain("--variant: only releases of the platform have it");
  const extra = join(containers().folder, "broken.yaml");
  await Bun.write(extra, "broken: [agent]\n");
  const clusterId = containers().id("broken");
  const words = ["--wait", "--agents", "1", "--extra-config", extra, "-c", clusterId, artifact];
  const created = await create(...words);
  expect(created.status).toBe(1);
  expect(created.stderr).toContain(
    "The installation failed on agent_0: the install script exited with status 3.",
  );
  expect(created.stderr).toContain("the meter is broken");
  await containers().run(["destroy", "-c", clusterId]);
});
