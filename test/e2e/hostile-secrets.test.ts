/**
 * Which texts are secrets is what the first master says, or what a user passes. Neither may stop the program, nor hide its own words, ids, keys, names of
 * nodes and paths, and what is a secret stays hidden in everything that the nodes say.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { cp, readdir } from "node:fs/promises";
import { join } from "node:path";
import { writeTalkingArtifact } from "./support/talking-artifact.ts";
import { nodeImage, startTestContainers } from "./support/test-containers.ts";
import type { TestContainers } from "./support/test-containers.ts";

const state: { containers?: TestContainers; node?: string } = {};
const containers = (): TestContainers => state.containers!;
const id = (): string => containers().id("hostile-secrets");
const configuration = "/var/lib/cluster-e2e/installer/genconf/config.yaml";
const secret = "$6$rounds=656000$salt$0123456789abcdefghijklmnop";

beforeAll(async () => {
  state.containers = await startTestContainers();
  const { folder } = containers();
  await Bun.write(join(folder, "license.txt"), "a-license-of-this-test\n");
  // The last lines of a failed installer's log, which wait shows.
  const artifact = await writeTalkingArtifact(
    folder,
    `echo 'the install of master_0 smells of ${secret}'; exit 3`,
  );
  const words = [
    "--variant",
    "enterprise",
    "--license-key",
    join(folder, "license.txt"),
    "--agents",
    "0",
  ];
  const nodes = ["--public-agents", "0", "--node-image", nodeImage];
  const created = await containers().run(["create", ...words, ...nodes, "-c", id(), artifact]);
  expect(created.status, created.stderr).toBe(0);
  state.node = (await containers().inspect(id())).nodes[0]!.id;
});

afterAll(async () => {
  await state.containers?.[Symbol.asyncDispose]();
});

/** Runs shell on the first master, where the attacker is root. */
const attack = (line: string) => containers().engine.run(["exec", state.node!, "sh", "-c", line]);

/** Lets the first master name secrets of the attacker's choice, beside a real one. */
async function declare(secrets: readonly string[]): Promise<void> {
  const text = JSON.stringify({ superuser_password_hash: secret, passwords: secrets });
  await attack(`echo ${Buffer.from(text).toString("base64")} | base64 -d >${configuration}`);
}

interface Failure {
  readonly schemaVersion: number;
  readonly error: {
    readonly id: string;
    readonly message: string;
    readonly facts: Record<string, unknown>;
  };
}

test("a first master that names 20,000 secrets stops nothing, and uncovers nothing", async () => {
  // The attacker's node sends more than it is asked for.
  await attack(
    `printf '#!/bin/sh\\nexec cat\\n' >/usr/local/bin/head; chmod 755 /usr/local/bin/head`,
  );
  await attack(
    `awk 'BEGIN { print "passwords:"; for (i = 0; i < 20000; i++) print "- alike" i }' >${configuration}`,
  );
  try {
    for (const words of [
      ["wait", "--timeout", "10m"],
      ["logs", "--output-dir", join(containers().folder, "flooded")],
    ]) {
      const ran = await containers().run([...words, "-vvv", "-c", id()]);
      expect(ran.status, ran.stderr).toBe(1);
      expect(ran.stderr).toContain("\n[remote-command-failed]\n");
      expect(ran.stderr).toContain("more secrets to mask");
      expect(ran.stderr).not.toContain("smells");
    }
    expect(await readdir(join(containers().folder, "flooded"))).toEqual([]);
  } finally {
    await attack("rm /usr/local/bin/head");
  }
});

test("secrets hide no key of JSON, no id, no node's name and none of our own words", async () => {
  await declare([
    "schemaVersion",
    "error",
    "message",
    "install-failed",
    "master_0",
    "The",
    "failed",
    "last lines",
  ]);
  const waited = await containers().run([
    "wait",
    "--output",
    "json",
    "-vvv",
    "-c",
    id(),
    "--timeout",
    "2m",
  ]);
  expect(waited.status, waited.stderr).toBe(1);
  const { schemaVersion, error } = JSON.parse(waited.stdout) as Failure;
  expect(schemaVersion).toBe(1);
  expect(error).toMatchObject({
    id: "install-failed",
    facts: { failures: [{ node: "master_0" }] },
  });
  expect(error.message).toStartWith(
    "The installation failed on master_0: the install script exited with status 3.\n",
  );
  expect(error.message).toContain("The last lines of its log:\n");
  expect(error.message).toContain("  the install of *** smells of ***");
  expect(waited.stdout + waited.stderr).not.toContain(secret.slice(-20));
  expect(waited.stderr).toContain("\n[install-failed]\n");
});

test("a password that is one of our words hides it only in what the nodes say", async () => {
  await declare([]);
  const waited = await containers().run([
    "wait",
    "-c",
    id(),
    "--timeout",
    "2m",
    "--superuser-password",
    "install",
  ]);
  expect(waited.stderr).toContain(
    "Error: The installation failed on master_0: the install script exited with status 3.\n",
  );
  expect(waited.stderr).toContain("  the *** of master_0 smells of ***");
  expect(waited.stderr).toEndWith("[install-failed]\n");
});

test("settings in --env are no secrets; neither they nor secrets change our own words, names and paths", async () => {
  const { folder } = containers();
  const elsewhere = join(folder, "us-west-2");
  await cp(join(folder, "state"), elsewhere, { recursive: true });
  await Bun.write(
    join(folder, "run.env"),
    "REGION=us-west-2\nBRANCH=master\nUX=fail\nWORD=cluster\n",
  );
  const run = (...words: string[]) =>
    containers().run(["run", "-c", id(), ...words, "true"], {
      environment: { XDG_STATE_HOME: elsewhere },
    });
  for (const values of [
    ["--env", "BRANCH=master", "--env", "UX=fail"],
    ["--env-file", join(folder, "run.env")],
  ]) {
    const refused = await run(...values, "--node", "master_9");
    expect(refused.stderr).toContain(`Cluster "${id()}" has no node "master_9".`);
    expect(refused.stderr).toEndWith("[node-not-found]\n");
    const failed = await run(
      ...values,
      "--no-test-env",
      "--fetch",
      `/missing:${join(folder, "missing")}`,
    );
    expect(failed.stderr).toEndWith("[transfer-failed]\n");
    expect(existsSync(/^Log: (.*)$/m.exec(failed.stderr)?.[1] ?? ""), failed.stderr).toBe(true);
  }
});

test("values that are secrets are masked in what run quotes, on the screen and in the log", async () => {
  const { folder } = containers();
  await Bun.write(join(folder, "secret.env"), "SETTING=from-a-file-77\n");
  const values = [
    "--env",
    "API_KEY=from-a-key-77",
    "--env",
    "PLAIN=from-plain-77",
    "--env-file",
    join(folder, "secret.env"),
  ];
  const shown = "/nowhere/from-a-file-77/from-a-key-77/from-plain-77";
  const failed = await containers().run([
    "run",
    "-vvv",
    "-c",
    id(),
    ...values,
    "--no-test-env",
    "--fetch",
    `${shown}:${join(folder, "none")}`,
    "true",
  ]);
  expect(failed.stderr).toContain("[transfer-failed]");
  const log = await Bun.file(/^Log: (.*)$/m.exec(failed.stderr)?.[1] ?? "").text();
  for (const text of [failed.stderr, log]) {
    // What tar says about the path is outside text.
    expect(text).toContain("/nowhere/***/***/from-plain-77");
  }
});
