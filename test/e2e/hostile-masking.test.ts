/**
 * Every command that shows or saves text from a node masks the cluster's secrets, even if it knows only the key. No
 * text from a node controls a terminal.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { cp, readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { writeTalkingArtifact } from "./support/talking-artifact.ts";
import { nodeImage, startTestContainers } from "./support/test-containers.ts";
import type { TestContainers } from "./support/test-containers.ts";

const license = "license-7f3a9c-first-line\nsecond-line-of-the-license\n";
const hash = "$6$rounds=656000$salt$0123456789abcdefghijklmnop";
const secrets = ["7f3a9c-first", "second-line-of-the-license", "0123456789abcdefghijklmnop"];
/** Another home, with what `scp` brings: the cluster's folder without logs. */
const state: { containers?: TestContainers; elsewhere?: string } = {};
const containers = (): TestContainers => state.containers!;
const elsewhere = (words: readonly string[]) =>
  containers().run(words, { environment: { XDG_STATE_HOME: state.elsewhere! } });
const id = (): string => containers().id("hostile-masking");

beforeAll(async () => {
  state.containers = await startTestContainers();
  const { folder } = containers();
  await Bun.write(join(folder, "license.txt"), license);
  await Bun.write(join(folder, "extra.yaml"), `superuser_password_hash: ${JSON.stringify(hash)}\n`);
  // As the last lines that wait shows of a failed installer's log.
  const artifact = await writeTalkingArtifact(
    folder,
    `printf '\\033[2J\\033]0;title\\007 \\302\\2332J \\342\\200\\256 the disk smells of smoke\\n'; exit 3`,
  );
  const words = [
    "create",
    "--variant",
    "enterprise",
    "--agents",
    "1",
    "--public-agents",
    "0",
    "--node-image",
    nodeImage,
  ];
  const own = [
    "--license-key",
    join(folder, "license.txt"),
    "--extra-config",
    join(folder, "extra.yaml"),
  ];
  const created = await containers().run([...words, ...own, "-c", id(), artifact]);
  expect(created.status, created.stderr).toBe(0);
  state.elsewhere = join(folder, "elsewhere");
  await cp(join(folder, "state"), state.elsewhere, { recursive: true });
  for (const name of await readdir(state.elsewhere, { recursive: true }))
    if (name.endsWith("/log") || name.endsWith("creation.json"))
      await rm(join(state.elsewhere, name));
});

afterAll(async () => {
  await state.containers?.[Symbol.asyncDispose]();
});

/** Of C0, C1 and bidirectional controls, what is left but newlines and tabs. */
const controls = (text: string): readonly string[] =>
  text.match(/[^\P{Cc}\n\t]|[\u200E\u200F\u2028-\u202E\u2066-\u2069]/gu) ?? [];

function expectHarmless(text: string): void {
  for (const secret of secrets) expect(text).not.toContain(secret);
  expect(controls(text)).toEqual([]);
}

test.each([[[]], [["-vvv"]]])(
  "wait %j shows a failed installer's log without secrets and controls",
  async (loud) => {
    const waited = await elsewhere(["wait", ...loud, "-c", id(), "--timeout", "2m"]);
    expect(waited.status, waited.stderr).toBe(1);
    expect(waited.stderr).toContain("the disk smells of smoke");
    expect(waited.stderr).toContain("***");
    expectHarmless(waited.stderr);
  },
);

test("JSON is masked and harmless too, and quotes the same lines", async () => {
  const waited = await elsewhere(["wait", "--output", "json", "-c", id(), "--timeout", "2m"]);
  expectHarmless(waited.stdout);
  const { error } = JSON.parse(waited.stdout) as { readonly error: { readonly message: string } };
  expect(error.message).toContain(
    "\uFFFD[2J\uFFFD]0;title\uFFFD \uFFFD2J \uFFFD the disk smells of smoke",
  );
});

// Shows R124.
test("saved logs hold neither, nor does the log of what was done", async () => {
  const folder = join(containers().folder, "logs");
  const logs = await elsewhere(["logs", "-vvv", "-c", id(), "--output-dir", folder]);
  expect(logs, logs.stderr).toMatchObject({ status: 0, stdout: `${folder}\n` });
  expectHarmless(logs.stderr);
  const names = await readdir(folder);
  expect(names).toContain("master_0.install.log");
  expect(names).toContain("agent_0.install.log");
  for (const name of names) expectHarmless(await readFile(join(folder, name), "utf8"));
  const installed = await readFile(join(folder, "agent_0.install.log"), "utf8");
  expect(installed).toContain('license_key_contents: "***');
  const kept = await readdir(state.elsewhere!, { recursive: true });
  const own = kept.filter((name) => name.endsWith("/log"));
  expect(own).toHaveLength(1);
  for (const name of own) expectHarmless(await readFile(join(state.elsewhere!, name), "utf8"));
});

test("run masks its own values in what it says itself, and leaves the command's output as it is", async () => {
  const values = [
    "--env",
    "TOKEN=token-of-mine",
    "--login-uname",
    "user-of-mine",
    "--login-pw",
    "password-of-mine",
  ];
  const refused = await elsewhere([
    "run",
    "-c",
    id(),
    ...values,
    "--fetch",
    "token-of-mine",
    "true",
  ]);
  expect(refused.status).toBe(2);
  expect(refused.stderr).toContain("***");
  expect(refused.stderr).not.toContain("token-of-mine");
  const line = `printf '\\033[1m%s %s\\n' "$TOKEN" "$CLUSTER_LOGIN_PW"`;
  const ran = await elsewhere(["run", "-vvv", "-c", id(), "--no-test-env", ...values, line]);
  expect(ran.stdout).toBe("\u001B[1mtoken-of-mine password-of-mine\n");
  for (const value of ["token-of-mine", "user-of-mine", "password-of-mine"])
    expect(ran.stderr).not.toContain(value);
});
