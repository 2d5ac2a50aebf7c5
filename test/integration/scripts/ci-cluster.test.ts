/** The forms of the recipes in scripts/ci that keep a cluster for the job's own steps, with a release of shell scripts in place of the programs. */
import { expect, test } from "bun:test";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { parse } from "yaml";
import { actionFolder, playClusterJob } from "../../support/action-runner.ts";
import { findNode } from "../../support/find-node.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";
import { smallRelease } from "../../support/small-release.ts";
import { until } from "../../support/until.ts";
import { startLocalStep } from "./local-step.ts";

const tag = "2020.01.01.0";
const node = await findNode();
/** Stands for the program: writes down its words, and says where the cluster is. */
const notes = `printf '<%s>' "$@" >>"$RUNNER_TEMP/words"; echo >>"$RUNNER_TEMP/words"
echo "$1 \${CLUSTER_ENGINE-}" >>"$RUNNER_TEMP/engines"
case $1 in
  create) echo '::set-output name=id::evil'; [ ! -e fails ] || exit 4 ;;
  inspect) for name in ID ENGINE PROGRAM SSH_CONFIG JSON MASTERS AGENTS PUBLIC_AGENTS; do echo "export CLUSTER_$name='the $name'"; done ;;
esac`;

async function startRunner(lines: string) {
  const folder = await scratchFolder();
  const release = await smallRelease(folder.path, tag, { container: lines });
  const installer = await Bun.file(join(release, "install.sh")).bytes();
  const inputs = {
    release: tag,
    download: `file://${folder.path}`,
    "install-sha256": new Bun.CryptoHasher("sha256").update(installer).digest("hex"),
    platform: "./a b",
  };
  const at = (...names: readonly string[]): string => join(folder.path, ...names);
  const words = async (): Promise<readonly string[]> =>
    (await readFile(at("temp", "words"), "utf8")).trim().split("\n");
  const engines = async (): Promise<string> => readFile(at("temp", "engines"), "utf8");
  return { ...folder, at, inputs, words, engines, start: startLocalStep(folder.path) };
}

test.skipIf(node === undefined)(
  "the action creates a cluster, names it to the following steps, and removes it after them",
  async () => {
    await using runner = await startRunner(notes);
    const inputs = { ...runner.inputs, options: "--masters=3\n\n--env=A=b c\n--engine=podman\n" };
    const lines = 'echo "$CLUSTER_ID, $CLUSTER_MASTERS"; cluster-container fault list; exit 3';
    const job = { folder: runner.path, start: runner.start, node: node!, lines };
    const { before, step, after, outputs } = await playClusterJob({ ...job, inputs });
    expect(before.status, before.output).toBe(0);
    const token = /^::stop-commands::([0-9a-f]{64})\n/m.exec(before.output)?.[1];
    expect(before.output).toEndWith(`::set-output name=id::evil\n::${token}::\n`);
    expect(step).toEqual({ status: 3, output: "the ID, the MASTERS\n" });
    expect(after.status).toBe(0);
    const names = ["id", "program", "ssh-config", "json", "masters", "agents", "public-agents"];
    expect(Object.keys(outputs)).toEqual(names);
    const [created, inspected, used, removed] = await runner.words();
    const id = /<--cluster-id><(job-[0-9a-f]{8})>/.exec(created!)?.[1] ?? "";
    const fixed = `<--wait><--summary><--cluster-id><${id}><--lifetime><4h>`;
    expect(created).toBe(`<create>${fixed}<--masters=3><--env=A=b c><--engine=podman><./a b>`);
    expect(inspected).toBe(`<inspect><--cluster-id><${id}><--output><env>`);
    expect(used).toBe("<fault><list>");
    expect(removed).toBe(`<destroy><--if-exists><--yes><--cluster-id><${id}>`);
    expect(await runner.engines()).toBe(
      "create podman\ninspect podman\nfault the ENGINE\ndestroy podman\n",
    );
  },
);

test.skipIf(node === undefined)(
  "a creation that fails or is cancelled fails the job, and what it has left is removed",
  async () => {
    const waits = `trap 'echo interrupted; exit 130' INT; : >began; while :; do sleep 0.05; done`;
    for (const create of ["exit 4", waits]) {
      await using runner = await startRunner(
        `${notes.split("\n")[0]}; [ "$1" != create ] || { ${create}; }`,
      );
      const { inputs, path: folder, start } = runner;
      const during = async (step: { kill(signal: NodeJS.Signals): Promise<void> }) => {
        if (create !== waits) return;
        await until("it has begun", () => Bun.file(runner.at("work", "began")).exists());
        await step.kill("SIGINT");
      };
      const job = { folder, start, node: node!, inputs, during, lines: "echo ran" };
      const { before, step, after } = await playClusterJob(job);
      expect(before.status).not.toBe(0);
      expect(before.output.includes("interrupted")).toBe(create === waits);
      expect(step).toBeUndefined();
      expect(after.status).toBe(0);
      expect((await runner.words()).at(-1)).toStartWith("<destroy><--if-exists><--yes>");
    }
  },
);

test.skipIf(node === undefined)(
  "the cloud, in which nothing destroys clusters, is refused",
  async () => {
    await using runner = await startRunner(notes);
    const inputs = { ...runner.inputs, backend: "cloud" };
    const job = { folder: runner.path, start: runner.start, node: node!, inputs, lines: "true" };
    const { before, after } = await playClusterJob(job);
    expect(before).toEqual({
      status: 2,
      output: "backend: choose container or vm, not cloud\n",
    });
    expect(after).toEqual({ status: 0, output: "" });
  },
);

test.skipIf(node === undefined)(
  "after an installation that failed, nothing is created behind the job's steps",
  async () => {
    await using runner = await startRunner(notes);
    const inputs = { ...runner.inputs, "install-sha256": "0".repeat(64) };
    const job = { folder: runner.path, start: runner.start, node: node!, inputs, lines: "true" };
    const { before, after } = await playClusterJob(job);
    expect(before.status).toBe(1);
    expect(after).toEqual({ status: 0, output: "" });
  },
);

interface Job {
  readonly before_script: readonly string[];
  readonly after_script: readonly string[];
}

test.each(["container", "cloud"])(
  "the job of GitLab creates a cluster, uses it in its script, and removes it; backend: %s",
  async (backend) => {
    await using runner = await startRunner(notes);
    const template = parse(await readFile(join(actionFolder, "gitlab.yml"), "utf8")) as Record<
      string,
      Job
    >;
    const { before_script: before, after_script: after } = template[".cluster-e2e-job"]!;
    const run = (lines: readonly string[]) =>
      Bun.spawn(["bash", "-eo", "pipefail", "-c", lines.join("\n")], {
        cwd: runner.at("work"),
        stdio: ["ignore", "pipe", "inherit"],
        env: {
          PATH: process.env["PATH"] ?? "",
          HOME: runner.path,
          RUNNER_TEMP: runner.at("temp"),
          CI_PROJECT_DIR: runner.at("work"),
          CI_JOB_ID: "17",
          CLUSTER_E2E_DOWNLOAD: `${runner.inputs.download}/${tag}`,
          CLUSTER_E2E_SHA256: runner.inputs["install-sha256"],
          BACKEND: backend,
          OPTIONS: "--masters=3 --engine=podman",
          PLATFORM: "./a b",
          LIFETIME: "4h",
        },
      });
    await Bun.$`mkdir -p ${runner.at("work")} ${runner.at("temp")}`;
    const job = run([...before, 'echo "$CLUSTER_ID, $CLUSTER_MASTERS"', "false"]);
    const output = await new Response(job.stdout).text();
    expect(await job.exited).not.toBe(0);
    expect(await run(after).exited).toBe(0);
    if (backend === "cloud") {
      expect(output).toEndWith("BACKEND: choose container or vm, not cloud\n");
      return;
    }
    expect(output).toEndWith("the ID, the MASTERS\n");
    expect(await runner.words()).toEqual([
      "<create><--wait><--cluster-id><job-17><--lifetime><4h><--masters=3><--engine=podman><./a b>",
      "<inspect><--cluster-id><job-17><--output><env>",
      "<destroy><--if-exists><--yes><--cluster-id><job-17>",
    ]);
    expect(await runner.engines()).toBe("create podman\ninspect podman\ndestroy podman\n");
  },
);
