/** Ctrl-C and kill -9 at every stage of a creation: nothing is left but the evidence, and the same create works again. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { buildArtifact } from "./support/artifacts.ts";
import type { Running } from "./support/executable.ts";
import { startTestCloud } from "./support/test-cloud.ts";
import type { TestCloud } from "./support/test-cloud.ts";

const state: { cloud?: TestCloud; artifact?: string } = {};
const cloud = (): TestCloud => state.cloud!;

beforeAll(async () => {
  state.cloud = await startTestCloud("container");
  state.artifact = await buildArtifact("oss", state.cloud.folder);
}, 300_000);

afterAll(async () => {
  await state.cloud?.[Symbol.asyncDispose]();
}, 120_000);

const createWords = (id: string) => [
  ...["create", "-v", "--variant", "oss", "--linux-distribution", "debian-12", "--public-agents", "0"],
  ...["-c", id, state.artifact!],
];

/** Resolves when the cloud has been asked for this action by now. */
async function asked(action: string): Promise<void> {
  const limit = Date.now() + 60_000;
  while (!JSON.stringify(await cloud().control("requests")).includes(`"${action}"`)) {
    if (Date.now() > limit) throw new Error(`${action} was never asked for`);
    await Bun.sleep(20);
  }
}

async function groups(): Promise<unknown> {
  return cloud().control("groups");
}

const stages: readonly [string, (creating: Running) => Promise<void>, unknown?][] = [
  [
    "while images are looked up",
    () => asked("DescribeImages"),
    { action: "DescribeImages", when: "before", times: 1, delayMs: 1000 },
  ],
  [
    "between the group's request and its answer",
    () => asked("CreateSecurityGroup"),
    { action: "CreateSecurityGroup", when: "after", times: 1, delayMs: 1500 },
  ],
  [
    "between the launch's request and its answer",
    () => asked("RunInstances"),
    { action: "RunInstances", when: "after", times: 2, delayMs: 2000 },
  ],
  ["while machines boot", (creating) => creating.said(/RunInstances|Launch|pending|boot/i)],
  ["while nodes are prepared", (creating) => creating.said(/Prepare/)],
  ["while the artifact is sent", (creating) => creating.said(/artifact/i)],
  ["while the installation is started", (creating) => creating.said(/Start/)],
];

test.each(stages)(
  "Ctrl-C %s leaves nothing",
  async (_when, reached, fault) => {
    await cloud().control("reset", {});
    if (fault !== undefined) await cloud().control("faults", fault);
    const creating = cloud().start(createWords("interrupted"));
    await reached(creating);
    creating.interrupt("SIGINT");
    const ended = await creating.ended;
    expect({ status: ended.status, signal: ended.signal }).toEqual({ status: undefined, signal: "SIGINT" });
    expect(ended.stdout).toBe("");
    expect(await cloud().machines()).toEqual([]);
    expect(await groups()).toEqual([]);
  },
  180_000,
);

test("after kill -9 the same create works, and nothing is doubled", async () => {
  await cloud().control("reset", {});
  const killed = cloud().start(createWords("killed"));
  await killed.said(/Prepare/);
  killed.interrupt("SIGKILL");
  await killed.ended;
  expect(await cloud().machines()).toHaveLength(2);
  const again = await cloud().run(createWords("killed"));
  expect(again).toMatchObject({ status: 0, stdout: "killed\n" });
  expect(await cloud().machines()).toHaveLength(2);
  expect(await cloud().run(["wait", "-c", "killed", "--timeout", "5m"])).toMatchObject({ status: 0 });
  const folders = await readdir(join(cloud().environment["XDG_STATE_HOME"]!, "cluster-e2e", "cloud", "us-west-2"));
  expect(folders.filter((name) => name.startsWith("killed-"))).toHaveLength(1);
}, 500_000);
