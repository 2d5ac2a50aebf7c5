/** The recipes of scripts/ci: a test plays the runner, with a release of shell scripts in place of the programs. */
import { expect, test } from "bun:test";
import { chmod, mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { parse } from "yaml";
import { scratchFolder } from "../../support/scratch-folder.ts";
import { smallRelease } from "../../support/small-release.ts";
import { until } from "../../support/until.ts";

const recipes = join(import.meta.dir, "..", "..", "..", "scripts", "ci");
const tag = "2020.01.01.0";

interface Step {
  readonly name: string;
  readonly run?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly if?: string;
}

interface Action {
  readonly inputs: Readonly<Record<string, { readonly default?: string; readonly required?: boolean }>>;
  readonly runs: { readonly steps: readonly Step[] };
}

const action = parse(await readFile(join(recipes, "action.yml"), "utf8")) as Action;

/** A runner's folder, a release, and a program that `lines` stand for once it is installed. */
async function startRunner() {
  const folder = await scratchFolder();
  const at = (...names: string[]): string => join(folder.path, ...names);
  const release = await smallRelease(folder.path, tag, ["container"]);
  await mkdir(at("work"));
  for (const name of ["path", "summary"]) await Bun.write(at(name), "");
  const checksum = new Bun.CryptoHasher("sha256").update(await Bun.file(join(release, "install.sh")).bytes());
  const known = { release: tag, download: `file://${folder.path}`, "install-sha256": checksum.digest("hex") };
  const environment = { RUNNER_TEMP: at("temp"), GITHUB_PATH: at("path"), GITHUB_STEP_SUMMARY: at("summary") };
  const spawn = async (lines: string, more: Readonly<Record<string, string>>) => {
    await Bun.write(at("step.sh"), lines);
    const path = [...(await readFile(at("path"), "utf8")).trim().split("\n"), process.env["PATH"]].join(":");
    return Bun.spawn(["bash", "--noprofile", "--norc", "-eo", "pipefail", at("step.sh")], {
      cwd: at("work"),
      env: { ...environment, ...more, GITHUB_ACTION_PATH: recipes, PATH: path },
      stdio: ["ignore", "pipe", "pipe"],
    });
  };
  /** Starts a step of the action as a runner does. */
  const start = async (name: string, inputs: Readonly<Record<string, string>> = {}) => {
    const step = action.runs.steps.find((each) => each.name === name)!;
    const given: Readonly<Record<string, string>> = { ...known, ...inputs };
    const valueOf = (text: string): string =>
      text.replace(
        /\$\{\{ inputs\.([\w-]+) \}\}/g,
        (_, input: string) => given[input] ?? action.inputs[input]!.default!,
      );
    const variables = Object.fromEntries(Object.entries(step.env ?? {}).map(([key, text]) => [key, valueOf(text)]));
    return spawn(step.run!, variables);
  };
  const program = async (lines: string): Promise<void> => {
    await Bun.write(at("temp", "cluster-e2e", "bin", "cluster-container"), `#!/bin/sh\n${lines}\n`);
    await chmod(at("temp", "cluster-e2e", "bin", "cluster-container"), 0o755);
  };
  return { ...folder, at, start, spawn, program, known };
}

const printsWords = `printf '<%s>' "$@"; exit 7`;
const install = "Install cluster-e2e";
const once = "Run the command on a cluster";

test("the action installs the release, and runs once with every word as it was given", async () => {
  await using runner = await startRunner();
  expect(await (await runner.start(install)).exited).toBe(0);
  await runner.program(printsWords);
  const options = "--env=A=b c\n\n  \n--masters=3\n";
  const step = await runner.start(once, { platform: "./a b", command: `echo "$A" | tee x`, options });
  expect(await new Response(step.stdout).text()).toBe(
    '<once><--junit><cluster-results/junit.xml><--logs-dir><cluster-results/logs><--summary><--env=A=b c><--masters=3><./a b><--><echo "$A" | tee x>',
  );
  expect(await step.exited).toBe(7);
});

test("another install.sh than the expected one is not run", async () => {
  await using runner = await startRunner();
  const step = await runner.start(install, { "install-sha256": "0".repeat(64) });
  expect(await step.exited).not.toBe(0);
  expect(await readFile(runner.at("path"), "utf8")).toBe("");
});

test("an unknown backend is refused", async () => {
  await using runner = await startRunner();
  const step = await runner.start(once, { platform: "x", command: "x", backend: "../x" });
  expect(await step.exited).toBe(2);
});

test.each(["SIGINT", "SIGTERM"] as const)(
  "%s reaches the program, which takes the place of the step's shell",
  async (signal) => {
    await using runner = await startRunner();
    await (
      await runner.start(install)
    ).exited;
    await runner.program(`trap 'exit 55' INT TERM; : >began; while :; do sleep 0.05; done`);
    const step = await runner.start(once, { platform: "x", command: "x" });
    await until("the program has begun", () => Bun.file(runner.at("work", "began")).exists());
    step.kill(signal);
    expect(await step.exited).toBe(55);
  },
);

test("the action's steps use declared inputs only, and what the program is told is never pasted into a script", async () => {
  for (const step of action.runs.steps) {
    expect(step.run ?? "").not.toContain("${{");
    for (const [, input] of JSON.stringify(step).matchAll(/\$\{\{ inputs\.([\w-]+) \}\}/g))
      expect(Object.keys(action.inputs)).toContain(input!);
  }
});

test("the job of GitLab installs the release and runs once", async () => {
  await using runner = await startRunner();
  const template = parse(await readFile(join(recipes, "gitlab.yml"), "utf8")) as Record<string, { script: string[] }>;
  const lines = template[".cluster-e2e"]!.script;
  const variables = {
    CI_PROJECT_DIR: runner.at("work"),
    CLUSTER_E2E_DOWNLOAD: `${runner.known.download}/${tag}`,
    CLUSTER_E2E_SHA256: runner.known["install-sha256"],
    BACKEND: "container",
    OPTIONS: "--masters=3 --agents=0",
    PLATFORM: "./a b",
    COMMAND: "echo 'a b'",
  };
  const bin = runner.at("work", ".cluster-e2e", "bin", "cluster-container");
  const stub = `printf '%s\\n' '#!/bin/sh' ${JSON.stringify(printsWords).replaceAll("$", "\\$")} >${bin}`;
  const job = await runner.spawn([...lines.slice(0, -1), stub, lines.at(-1)].join("\n"), variables);
  expect(await new Response(job.stdout).text()).toEndWith(
    "<once><--junit><cluster-results/junit.xml><--logs-dir><cluster-results/logs><--masters=3><--agents=0><./a b><--><echo 'a b'>",
  );
  expect(await job.exited).toBe(7);
});
