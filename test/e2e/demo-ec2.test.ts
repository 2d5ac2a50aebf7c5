/** `./scripts/demo ec2`, with the local cloud in place of EC2. */
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { chmod, cp } from "node:fs/promises";
import { join } from "node:path";
import { repository } from "./support/executable.ts";
import { type TestCloud, startTestCloud } from "./support/test-cloud.ts";

const state: { cloud?: TestCloud } = {};
const cloud = (): TestCloud => state.cloud!;

beforeAll(async () => {
  state.cloud = await startTestCloud("container");
});

beforeEach(async () => {
  await cloud().control("reset", {});
});

afterAll(async () => {
  await state.cloud?.[Symbol.asyncDispose]();
});

const meter = join(import.meta.dir, "support", "meter");

function startDemo(...words: readonly string[]) {
  const report = join(cloud().folder, "report.md");
  const argv = ["scripts/demo-ec2.ts", "--platform", meter, "--report", report, ...words];
  const child = Bun.spawn([process.execPath, ...argv], {
    cwd: repository,
    env: { ...process.env, ...cloud().environment },
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
  });
  return { child, report: async () => Bun.file(report).text() };
}

async function expectNothingLeft(): Promise<void> {
  expect(await cloud().machines()).toEqual([]);
  expect(await cloud().control("groups")).toEqual([]);
}

test("it runs the main flow, finds no differences, leaves nothing, and its report has no secret", async () => {
  const { child, report } = startDemo("--yes");
  const stderr = await new Response(child.stderr).text();
  expect(await child.exited, stderr).toBe(0);
  const text = await report();
  for (const command of ["doctor", "create", "wait", "run", "list", "inspect", "logs"])
    expect(text).toContain(`\n| \`cluster-cloud ${command} `);
  expect(text).toContain("Everything works, and EC2 answers as the local cloud does.");
  expect(text).toContain("Left in the account: nothing.");
  expect(text).toContain("| why it ended | Client.UserInitiatedShutdown");
  const { CLOUD_ACCESS_KEY_ID = "", CLOUD_SECRET_ACCESS_KEY = "" } = cloud().environment;
  for (const secret of [
    CLOUD_ACCESS_KEY_ID,
    CLOUD_SECRET_ACCESS_KEY,
    cloud().folder,
    "ssh-ed25519",
  ])
    expect(text).not.toContain(secret);
  expect(text).not.toMatch(/\b\d+\.\d+\.\d+\.\d+\b/);
  await expectNothingLeft();
});

test("it launches nothing without an answer to its question", async () => {
  const { child } = startDemo();
  const stderr = await new Response(child.stderr).text();
  expect(await child.exited).toBe(1);
  expect(stderr).toContain("about 50 cents");
  expect(stderr).toContain("--yes");
  expect(await cloud().control("instances")).toEqual([]);
  expect(await cloud().control("groups")).toEqual([]);
});

test("it removes everything after Ctrl-C, and after a command that failed", async () => {
  const interrupted = startDemo("--yes");
  const seen = { text: "" };
  for await (const part of interrupted.child.stderr.pipeThrough(new TextDecoderStream())) {
    seen.text += part;
    if (seen.text.includes("Boot …") && !seen.text.includes("SIGINT"))
      interrupted.child.kill("SIGINT");
  }
  expect(await interrupted.child.exited, seen.text).toBe(130);
  await expectNothingLeft();
  const broken = join(cloud().folder, "broken");
  await cp(meter, broken, { recursive: true });
  await Bun.write(join(broken, "install"), "#!/bin/sh\nexit 3\n");
  await chmod(join(broken, "install"), 0o755);
  const failed = startDemo("--yes", "--platform", broken);
  await new Response(failed.child.stderr).text();
  expect(await failed.child.exited).toBe(1);
  expect(await failed.report()).toContain("- Failed: ");
  await expectNothingLeft();
});
