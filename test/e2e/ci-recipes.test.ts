/** The action of scripts/ci on containers, as a runner of GitHub runs it: its steps, files, cache and signals. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { cp, readFile, readdir, rm, truncate } from "node:fs/promises";
import { join } from "node:path";
import { parse } from "yaml";
import type { JobRequest, StepProcess } from "../support/action-runner.ts";
import { junitOutcomes } from "../support/junit.ts";
import { until } from "../support/until.ts";
import { mirrorLack } from "./support/bare-container.ts";
import { type CiRunner, startRunner } from "./support/ci-runner.ts";
import { repository } from "./support/executable.ts";
import { type TestContainers, nodeImage, startTestContainers } from "./support/test-containers.ts";

interface Workflow {
  readonly jobs?: { readonly test: { readonly steps: readonly { readonly run?: string }[] } };
}

const state: { containers?: TestContainers; runner?: CiRunner } = {};
const containers = (): TestContainers => state.containers!;
const at = (...names: readonly string[]): string => join(containers().folder, ...names);
const step = "Run the command on a cluster";

beforeAll(async () => {
  state.containers = await startTestContainers();
  state.runner = await startRunner(containers().folder);
  await cp(join(import.meta.dir, "support", "meter"), at("work", "meter"), { recursive: true });
});

afterAll(async () => {
  await state.runner?.[Symbol.asyncDispose]();
  await state.containers?.[Symbol.asyncDispose]();
});

const play = async (
  options: readonly string[],
  inputs: JobRequest["inputs"],
  more: Partial<JobRequest> = {},
) =>
  state.runner!.play(
    {
      platform: "./meter",
      options: [`--node-image=${nodeImage}`, "--agents=1", ...options].join("\n"),
      ...inputs,
    },
    more,
  );

/** How much slower than GitHub's computers this one is, by the time in which the step has started its two containers. */
function slownessOf(running: StepProcess): number {
  const [, seconds = "60"] = /Start containers: done \((\d+\.\d) s\)/.exec(running.output()) ?? [];
  return Math.max(1, Number(seconds));
}

/** What GitHub does to the step of a cancelled job, as slowly as this computer is. Resolves with how many of GitHub's seconds the step went on. */
async function cancelStep(running: StepProcess): Promise<number> {
  const slowness = slownessOf(running);
  const beganMs = performance.now();
  const ends = async (withinMs: number): Promise<boolean> =>
    Promise.race([running.exited.then(() => true), Bun.sleep(withinMs).then(() => false)]);
  await running.kill("SIGINT");
  if (!(await ends(7_500 * slowness))) await running.kill("SIGTERM");
  if (!(await ends(2_500 * slowness))) await running.kill("SIGKILL");
  return (performance.now() - beganMs) / 1_000 / slowness;
}

const said = async (running: StepProcess, text: string): Promise<void> =>
  until(`the step says "${text}"`, async () => running.output().includes(text), {
    limitMs: 600_000,
  });

test("a success: the command's output, its files, a summary and a report, and no cluster", async () => {
  const id = containers().id("success");
  const options = [`--cluster-id=${id}`, "--fetch=/tmp/result:results/", "--env=A=b c"];
  const { steps, conclusion, summary } = await play(options, {
    command: 'echo "$A" | tee /tmp/result',
  });
  expect(conclusion, steps[step]?.output).toBe("success");
  expect(steps[step]?.output).toContain("\nb c\n");
  expect(await readFile(at("work", "results", "result"), "utf8")).toBe("b c\n");
  expect(
    Object.values(junitOutcomes(await readFile(at("temp", "cluster-results", "junit.xml")))),
  ).toEqual(Array.from({ length: 5 }, () => "passed"));
  expect(summary).toStartWith("### The command succeeded\n");
  expect(await readdir(at("artifacts"))).toEqual([]);
  expect(await containers().things(id)).toEqual([]);
});

test("a failure: the job fails with the command, keeps report and logs, and no cluster", async () => {
  const id = containers().id("failure");
  const { steps, conclusion, summary } = await play([`--cluster-id=${id}`], { command: "exit 42" });
  expect(steps[step]?.status, steps[step]?.output).toBe(42);
  expect(conclusion).toBe("failure");
  const kept = at("artifacts", "cluster-results-test-0-1");
  expect(junitOutcomes(await readFile(join(kept, "junit.xml")))).toMatchObject({
    "The platform is ready": "passed",
    "The command succeeds": "CommandFailed",
  });
  expect(await readdir(join(kept, "logs"))).toContain("agent_0.install.log");
  expect(summary).toContain("The command exited with status 42.");
  expect(await containers().things(id)).toEqual([]);
});

test.each(["Boot …", "is ready."])(
  "a cancelled job, at %p: the cluster is gone before the runner kills the step",
  async (moment) => {
    const id = containers().id(moment.startsWith("Boot") ? "early" : "late");
    const took = { seconds: Infinity };
    const cancel = async (running: StepProcess): Promise<boolean> => {
      await said(running, moment);
      took.seconds = await cancelStep(running);
      return true;
    };
    const job = await play(
      [`--cluster-id=${id}`],
      { command: "sleep 600" },
      { during: { [step]: cancel } },
    );
    expect(job.conclusion).toBe("cancelled");
    expect(took.seconds, job.steps[step]?.output).toBeLessThan(7.5);
    expect(job.steps[step]?.output).toContain("Remove what was created: done");
    expect(await containers().things(id)).toEqual([]);
  },
);

test("a step that is killed: the next job on this runner removes its cluster", async () => {
  const left: { id?: string } = {};
  const kill = async (running: StepProcess): Promise<boolean> => {
    await said(running, "is ready.");
    left.id = /Cluster "(once-[0-9a-f]{8})" is ready/.exec(running.output())?.[1] ?? "";
    await running.kill("SIGKILL");
    return true;
  };
  await play([], { command: "sleep 600" }, { during: { [step]: kill } });
  expect(await containers().things(left.id!)).toHaveLength(3);
  const { conclusion, steps } = await play([], { command: "true" });
  expect(conclusion, steps[step]?.output).toBe("success");
  expect(await containers().things(left.id!)).toEqual([]);
});

test("with a cache: the first job installs, the next one starts from the file, and a damaged file costs only time", async () => {
  const id = containers().id("cached");
  const job = async (runId: string): Promise<string> => {
    // Hosted runners are new for each job.
    await rm(at("temp"), { recursive: true, force: true });
    const inputs = { cache: "true", command: "systemctl is-active meter" };
    const { conclusion, steps } = await play([`--cluster-id=${id}`], inputs, { runId });
    const output = steps[step]?.output ?? "";
    expect(conclusion, output).toBe("success");
    expect(output).toContain("\nactive\n");
    expect(await containers().things(id)).toEqual([]);
    return output;
  };
  const cached = async (): Promise<readonly string[]> => readdir(at("caches"));
  expect(await job("1")).toContain("Save the cluster as a file: ");
  expect(await cached()).toHaveLength(1);
  const second = await job("2");
  expect(second).toContain(`, from ${at("temp")}`);
  expect(second).not.toContain("Start installation");
  expect(await cached()).toHaveLength(1);
  const file = at("caches", (await cached())[0]!, "cluster.zst");
  await truncate(file, Math.floor(Bun.file(file).size / 2));
  expect(await job("3")).toContain("The platform is installed instead.");
  expect(await cached()).toHaveLength(2);
  expect(await job("4")).not.toContain("Start installation");
});

test("an action of its own: the job's steps use the cluster, which is gone after them", async () => {
  const lines = [
    "cluster-container run --node agent_0 systemctl is-active meter",
    'ssh -F "$CLUSTER_SSH_CONFIG" agent_0 hostname',
    "cluster-container node stop --force agent_0",
    'echo "$CLUSTER_ID"; exit 3',
  ].join("\n");
  const options = `--node-image=${nodeImage}\n--agents=1`;
  const inputs = { platform: "./meter", options };
  const { before, outputs, after, ...job } = await state.runner!.playCluster({ inputs, lines });
  expect(before.status, before.output).toBe(0);
  expect(job.step?.status, job.step?.output).toBe(3);
  expect(job.step?.output).toMatch(/^active\n(?:.*\n)*?agent-0\n/m);
  expect(job.step?.output).toContain(`${outputs["id"]}\n`);
  expect(after.status, after.output).toBe(0);
  expect(await containers().things(outputs["id"]!)).toEqual([]);
});

const noMirror = await mirrorLack();

test.skipIf(noMirror !== undefined)(
  `the page's step for virtual machines installs QEMU, and permits the use of KVM if it is there (${noMirror ?? "here"})`,
  async () => {
    const page = await Bun.file(join(repository, "scripts", "ci", "README.md")).text();
    const workflows = [...page.matchAll(/^```yaml\n(.*?)^```$/gms)].map(
      ([, text = ""]) => parse(text) as Workflow,
    );
    const lines = workflows
      .flatMap(({ jobs }) => (jobs?.test.steps ?? []).flatMap(({ run }) => run ?? []))
      .find((run) => run.includes("qemu-system"));
    const without = await state.runner!.run(
      `${lines}\nqemu-system-x86_64 --version && qemu-img --version`,
    );
    expect(without.status, without.output).toBe(0);
    // No udev runs in a container.
    const udevadm =
      "printf '#!/bin/sh\\necho udevadm \"$@\"\\n' >/usr/bin/udevadm; chmod 755 /usr/bin/udevadm";
    const prepared = `${udevadm}; mkdir -p /etc/udev/rules.d; mknod /dev/kvm c 10 232`;
    const { status, output } = await state.runner!.run(
      `${prepared}\n${lines}\ncat /etc/udev/rules.d/*kvm*`,
    );
    expect(status, output).toBe(0);
    expect(output.trim().split("\n").slice(-3)).toEqual([
      "udevadm control --reload-rules",
      "udevadm trigger --name-match=kvm --settle",
      'KERNEL=="kvm", MODE="0666", OPTIONS+="static_node=kvm"',
    ]);
  },
);
