/** Reports everything that is wrong with a command line at once, and sends no request. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { startTestCloud } from "./support/test-cloud.ts";
import type { TestCloud } from "./support/test-cloud.ts";

const state: { cloud?: TestCloud } = {};
const cloud = (): TestCloud => state.cloud!;

beforeAll(async () => {
  state.cloud = await startTestCloud("in-process");
  const { folder } = state.cloud;
  await mkdir(join(folder, "genconf-with-config"));
  await Promise.all([
    writeFile(join(folder, "artifact.sh"), "#!/bin/bash\n# variant: oss\nexit 1\n"),
    writeFile(join(folder, "list.yaml"), "- a\n- b\n"),
    writeFile(join(folder, "superuser.yaml"), "superuser_password_hash: $6$salt$hash\n"),
    writeFile(join(folder, "broken.yaml"), "a: [1\nb: 2\n"),
    writeFile(join(folder, "page.html"), "<!doctype html><title>Log in</title>"),
    writeFile(join(folder, "genconf-with-config", "config.yaml"), "a: 1\n"),
  ]);
});

afterAll(async () => {
  await state.cloud?.[Symbol.asyncDispose]();
});

const create = ["create", "--variant", "oss", "artifact.sh"];

// What else is refused: test/unit/commands/bad-usage.test.ts.
test.each<[string, readonly string[], string]>([
  ["an unknown command", ["crate"], "create"],
  ["an even number of masters", [...create, "--masters", "2"], "--masters"],
  ["no PLATFORM", ["create", "--variant", "oss"], "PLATFORM"],
  ["a bad --node", ["run", "--node", "boss_1", "true"], "--node"],
  ["no command", ["run"], "COMMAND: required"],
])("%s ends with 2 and names it", async (_what, words, named) => {
  const ran = await cloud().run(words, { cwd: cloud().folder });
  expect({ status: ran.status, stdout: ran.stdout }).toEqual({ status: 2, stdout: "" });
  expect(ran.stderr).toContain(named);
  expect(ran.stderr).toContain("[bad-usage]");
});

// Shows R91.
test("all problems of one command line are reported together", async () => {
  const words = [
    "create",
    "--variant",
    "open",
    "--masters",
    "none",
    "--agents",
    "x",
    "--extra-config",
    "list.yaml",
    "--bogus",
    "-c",
    "/",
  ];
  const ran = await cloud().run(words, { cwd: cloud().folder });
  for (const named of [
    "--variant",
    "--masters",
    "--agents",
    "list.yaml",
    "--bogus",
    "--cluster-id",
    "PLATFORM",
  ]) {
    expect(ran.stderr).toContain(named);
  }
  expect(ran.status).toBe(2);
});

// Shows R22, R60.
test.each<[string, readonly string[], number, string]>([
  ["another variant", ["create", "--variant", "enterprise", "artifact.sh"], 1, "variant-mismatch"],
  [
    "an artifact that is no script",
    ["create", "--variant", "oss", "page.html"],
    1,
    "artifact-invalid",
  ],
  [
    "an artifact that does not exist",
    ["create", "--variant", "oss", "none.sh"],
    1,
    "artifact-unreachable",
  ],
  [
    "a dead host",
    ["create", "--variant", "oss", "http://user:pass@127.0.0.1:9/a.sh?X-Signature=topsecret"],
    1,
    "artifact-unreachable",
  ],
])(
  "%s: an error with its id, nothing launched, no secret printed",
  async (_what, words, status, id) => {
    const ran = await cloud().run([...words, "-vvv"], { cwd: cloud().folder });
    expect(ran.stderr).toContain(`[${id}]`);
    expect({ status: ran.status, stdout: ran.stdout }).toEqual({ status, stdout: "" });
    expect(ran.stderr).not.toMatch(/topsecret|pass@/);
  },
);

test("none of this made a machine or a group", async () => {
  const { counts } = (await cloud().control("requests")) as {
    counts: Readonly<Record<string, number>>;
  };
  expect(Object.keys(counts)).not.toContainAnyValues(["RunInstances", "CreateSecurityGroup"]);
});

test("no credentials: 5, and what was looked for", async () => {
  const environment = {
    CLOUD_ACCESS_KEY_ID: "",
    CLOUD_SECRET_ACCESS_KEY: "",
    HOME: cloud().folder,
    AWS_EC2_METADATA_DISABLED: "true",
  };
  const ran = await cloud().run(["list"], { environment });
  expect(ran).toMatchObject({ status: 5, stdout: "" });
  expect(ran.stderr).toContain("CLOUD_ACCESS_KEY_ID");
  expect(ran.stderr).toContain("[no-credentials]");
});

test("JSON output is one object under failure and -vvv", async () => {
  const ran = await cloud().run(["inspect", "-c", "nobody", "--output", "json", "-vvv"]);
  const { schemaVersion, error } = JSON.parse(ran.stdout) as {
    schemaVersion: number;
    error: { id: string };
  };
  expect({ status: ran.status, schemaVersion, id: error.id }).toEqual({
    status: 3,
    schemaVersion: 1,
    id: "cluster-not-found",
  });
});
