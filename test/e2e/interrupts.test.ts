/** Ctrl-C and kill -9 at every stage of a creation: only the failure logs are left, and the same create works again. */
import { expect, test } from "bun:test";
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Running } from "./support/executable.ts";
import { shareBackend } from "./support/shared-backend.ts";
import { startTestCloud } from "./support/test-cloud.ts";

const { backend: cloud, artifact } = shareBackend(async () => startTestCloud("container"));

const createWords = (id: string, agents = 1) =>
  `create -v --variant oss --linux-distribution debian-12 --agents ${agents} --public-agents 0 -c ${id} ${artifact()}`.split(
    " ",
  );

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

const stateFolder = (): string =>
  join(cloud().environment["XDG_STATE_HOME"]!, "cluster-e2e", "cloud", "us-west-2");

/** What the state folders of this cluster id hold. */
async function filesOf(id: string): Promise<readonly string[]> {
  const names = await readdir(stateFolder(), { recursive: true }).catch(() => []);
  return names.filter((name) => name.startsWith(`${id}-`));
}

interface Stage {
  readonly when: string;
  readonly reached: (creating: Running) => Promise<void>;
  /** What the cloud does to make the stage last. */
  readonly fault?: unknown;
  /** What is kept: nothing before anything was made, then the log, and once they have written to it, their console. */
  readonly logs: "nothing" | "log" | "console";
}

const delayed = (action: string, when: "before" | "after", delayMs: number) => ({
  action,
  when,
  times: 3,
  delayMs,
});

const stages: readonly Stage[] = [
  {
    when: "while images are looked up",
    reached: () => asked("DescribeImages"),
    fault: delayed("DescribeImages", "before", 1000),
    logs: "nothing",
  },
  {
    when: "between the group's request and its answer",
    reached: () => asked("CreateSecurityGroup"),
    fault: delayed("CreateSecurityGroup", "after", 1500),
    logs: "log",
  },
  {
    when: "between the launch's request and its answer",
    reached: () => asked("RunInstances"),
    fault: delayed("RunInstances", "after", 2000),
    logs: "log",
  },
  { when: "while machines boot", reached: (creating) => creating.said("Boot …"), logs: "log" },
  {
    when: "while nodes are prepared",
    reached: (creating) => creating.said(": Prepare …"),
    logs: "console",
  },
  {
    when: "while the artifact is sent",
    reached: (creating) => creating.said("Fetch artifact …"),
    logs: "console",
  },
  {
    when: "while the installation is started",
    reached: (creating) => creating.said("Start installation …"),
    logs: "console",
  },
];

// Shows R93.
test.each([...stages])("Ctrl-C $when leaves nothing", async ({ reached, fault, logs }) => {
  await cloud().control("reset", {});
  if (fault !== undefined) await cloud().control("faults", fault);
  const creating = cloud().start(createWords("interrupted", 0));
  await reached(creating);
  creating.interrupt("SIGINT");
  const ended = await creating.ended;
  expect({ status: ended.status, signal: ended.signal }).toEqual({
    status: undefined,
    signal: "SIGINT",
  });
  expect(ended.stdout).toBe("");
  expect(await cloud().machines()).toEqual([]);
  expect(await groups()).toEqual([]);
  const kept = await filesOf("interrupted");
  expect(kept.some((name) => name.endsWith("/log"))).toBe(logs !== "nothing");
  if (logs === "console") expect(kept.some((name) => name.endsWith(".console.txt"))).toBe(true);
  await rm(stateFolder(), { recursive: true, force: true });
});

// Shows R99.
test("after kill -9 the same create works, and nothing is doubled", async () => {
  await cloud().control("reset", {});
  const killed = cloud().start(createWords("killed"));
  await killed.said(": Prepare …");
  killed.interrupt("SIGKILL");
  await killed.ended;
  expect(await cloud().machines()).toHaveLength(2);
  const again = await cloud().run(createWords("killed"));
  expect(again).toMatchObject({ status: 0, stdout: "killed\n" });
  expect(await cloud().machines()).toHaveLength(2);
  expect(await cloud().run(["wait", "-c", "killed", "--timeout", "14m"])).toMatchObject({
    status: 0,
  });
  const folders = await readdir(stateFolder());
  expect(folders.filter((name) => name.startsWith("killed-"))).toHaveLength(1);
});
