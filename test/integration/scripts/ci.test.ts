/** The recipes of scripts/ci: a test plays the runner, with a release of shell scripts in place of the programs. */
import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { lstat, readFile, readdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import { parse } from "yaml";
import { type JobRequest, actionFolder, playJob, readAction } from "../../support/action-runner.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";
import { smallRelease } from "../../support/small-release.ts";
import { until } from "../../support/until.ts";
import { startLocalStep } from "./local-step.ts";

const tag = "2020.01.01.0";

/** A runner's folder, and a release with a program that does what `lines` say. */
async function startRunner(lines: string) {
  const folder = await scratchFolder();
  const at = (...names: string[]): string => join(folder.path, ...names);
  const release = await smallRelease(folder.path, tag, { container: lines });
  const checksum = new Bun.CryptoHasher("sha256").update(
    await Bun.file(join(release, "install.sh")).bytes(),
  );
  const known = {
    release: tag,
    download: `file://${folder.path}`,
    "install-sha256": checksum.digest("hex"),
  };
  const spawn = (argv: readonly string[], variables: Readonly<Record<string, string>>) =>
    Bun.spawn([...argv], {
      cwd: at("work"),
      env: { HOME: folder.path, ...variables },
      stdio: ["ignore", "pipe", "pipe"],
    });
  const start = startLocalStep(folder.path);
  const play = async (inputs: JobRequest["inputs"], more: Partial<JobRequest> = {}) =>
    playJob({
      folder: folder.path,
      start,
      ...more,
      inputs: { platform: "x", command: "x", ...known, ...inputs },
    });
  return { ...folder, at, play, spawn, known };
}

const printsWords = `printf '<%s>' "$@"; exit 7`;
const install = "Install cluster-e2e";
const once = "Run the command on a cluster";
const stop = /^::stop-commands::([0-9a-f]{64})\n/;
const withoutStop = (output: string): string => output.replace(stop, "");
/** Writes to the files that it is told to, like the program. */
const writesResults = `junit=$3 logs=$5; mkdir -p "$logs"; echo report >"$junit"; echo log >"$logs/log"; exit 7`;

test("the action installs the release, and runs once with every word as it was given", async () => {
  await using runner = await startRunner(printsWords);
  const options = "--env=A=b c\n\n  \n--masters=3\n";
  const { steps, conclusion } = await runner.play({
    platform: "./a b",
    command: `echo "$A" | tee x`,
    options,
  });
  expect({ ...steps[once], output: withoutStop(steps[once]!.output) }).toEqual({
    status: 7,
    output: `<once><--junit><${runner.at("temp")}/cluster-results/junit.xml><--logs-dir><${runner.at("temp")}/cluster-results/logs><--summary><--env=A=b c><--masters=3><./a b><--><echo "$A" | tee x>`,
  });
  expect(conclusion).toBe("failure");
});

test("the whole line of SHA256SUMS will do for the checksum of install.sh, also without sha256sum, as on a Mac", async () => {
  await using runner = await startRunner("exit 7");
  const line = `${runner.known["install-sha256"]}  install.sh`;
  expect((await runner.play({ "install-sha256": line })).steps[once]?.status).toBe(7);
  const words = "sh env curl shasum perl mkdir cat";
  await Bun.$`mkdir ${runner.at("mac")}`;
  for (const word of words.split(" ")) await symlink(Bun.which(word)!, runner.at("mac", word));
  const step = runner.spawn(["sh", join(actionFolder, "install")], {
    PATH: runner.at("mac"),
    RUNNER_TEMP: runner.at("temp"),
    GITHUB_PATH: runner.at("path"),
    RELEASE: tag,
    DOWNLOAD: runner.known.download,
    INSTALL_SHA256: "0".repeat(64),
  });
  expect(await new Response(step.stderr).text()).toContain(
    `has the SHA-256 checksum ${runner.known["install-sha256"]}, not the one in the input`,
  );
});

test("another install.sh than the expected one is not run", async () => {
  await using runner = await startRunner(printsWords);
  const { steps } = await runner.play({ "install-sha256": "0".repeat(64) });
  expect(Object.keys(steps)).toEqual([install]);
  expect(await readFile(runner.at("path"), "utf8")).toBe("");
});

test("a release that there isn't is named, such as the commit to which the action is pinned", async () => {
  await using runner = await startRunner(printsWords);
  const { steps } = await runner.play({ release: "0123abc" });
  expect(steps[install]?.status).toBe(1);
  expect(steps[install]?.output).toContain(
    "cannot download the release 0123abc: use the action at a release's tag",
  );
});

test("an unknown backend is refused", async () => {
  await using runner = await startRunner(printsWords);
  expect((await runner.play({ backend: "../x" })).steps[once]?.status).toBe(2);
});

test.each(["SIGINT", "SIGTERM"] as const)(
  "%s reaches the program, which takes the place of the step's shell",
  async (signal) => {
    await using runner = await startRunner(
      `trap 'exit 55' INT TERM; : >began; while :; do sleep 0.05; done`,
    );
    const cancel: NonNullable<JobRequest["during"]>[string] = async (step) => {
      await until("the program has begun", () => Bun.file(runner.at("work", "began")).exists());
      await step.kill(signal);
      return true;
    };
    const { steps, conclusion } = await runner.play({}, { during: { [once]: cancel } });
    expect(steps[once]?.status).toBe(55);
    expect(conclusion).toBe("cancelled");
  },
);

/** Stands for a program that writes the cluster's file unless it can use it, and says which. */
const caches = `while [ "$1" != --cache ]; do shift; done
if [ "$(cat "$2" 2>/dev/null)" = usable ]; then echo used; else echo usable >"$2" && echo saved; fi`;

test("the cluster's file goes into the cache whenever it is written, and comes back for the same platform", async () => {
  await using runner = await startRunner(caches);
  const play = async (runId: string, inputs = {}) => {
    await Bun.$`rm -rf ${runner.at("temp")}`;
    const { steps, conclusion } = await runner.play(
      { cache: "true", platform: "platform", ...inputs },
      { runId },
    );
    expect(conclusion).toBe("success");
    return withoutStop(steps[once]!.output);
  };
  const cached = async (): Promise<readonly string[]> => readdir(runner.at("caches"));
  await Bun.write(runner.at("work", "platform", "install"), "1");
  expect(await play("1")).toBe("saved\n");
  expect(await play("2")).toBe("used\n");
  expect(await play("3", { options: "--masters=3" })).toBe("saved\n");
  await Bun.write(runner.at("work", "platform", "install"), "2");
  expect(await play("4")).toBe("saved\n");
  expect(await play("5")).toBe("used\n");
  expect(await cached()).toHaveLength(3);
  for (const name of await cached())
    await Bun.write(runner.at("caches", name, "cluster.zst"), "damaged");
  expect(await play("6")).toBe("saved\n");
  expect(await play("7")).toBe("used\n");
  expect(await cached()).toHaveLength(4);
});

test("the action's steps use declared inputs only, and what the program is told is never pasted into a script", async () => {
  const action = await readAction();
  for (const step of action.runs.steps) {
    expect(step.run ?? "").not.toContain("${{");
    for (const [, input] of JSON.stringify(step).matchAll(/\binputs\.([\w-]+)/g))
      expect(Object.keys(action.inputs)).toContain(input!);
  }
});

/** The lines of the template's job. */
async function gitlabJob() {
  const template = parse(await readFile(join(actionFolder, "gitlab.yml"), "utf8")) as Record<
    string,
    { script: string[]; after_script: string[] }
  >;
  const { script, after_script: afterwards } = template[".cluster-e2e"]!;
  return { script, afterwards };
}

/** The job's variables that don't depend on the project. */
const gitlabVariables = ({ at, known }: Awaited<ReturnType<typeof startRunner>>) => ({
  PATH: process.env["PATH"] ?? "",
  CI_PROJECT_DIR: at("work"),
  CLUSTER_E2E_DOWNLOAD: `${known.download}/${tag}`,
  CLUSTER_E2E_SHA256: known["install-sha256"],
  BACKEND: "container",
});

test.each(["false", "true"])(
  "the job of GitLab installs the release and runs once; with a cache: %s",
  async (cache) => {
    await using runner = await startRunner(printsWords);
    const outside = `${runner.at("work")}.cluster-e2e`;
    const words = cache === "true" ? `<--cache><${outside}/cache/cluster.zst>` : "";
    const { script, afterwards } = await gitlabJob();
    await Bun.write(runner.at("job"), script.join("\n"));
    await Bun.write(runner.at("work", ".cluster-e2e", "cluster.zst"), "kept");
    const environment = {
      ...gitlabVariables(runner),
      CLUSTER_E2E_SHA256: `${runner.known["install-sha256"]}  install.sh`,
      OPTIONS: "--masters=3 --agents=0",
      PLATFORM: "./a b",
      COMMAND: "echo 'a b'",
      CACHE: cache,
    };
    const job = runner.spawn(["bash", "-eo", "pipefail", runner.at("job")], environment);
    expect(await new Response(job.stdout).text()).toEndWith(
      `<once><--junit><${outside}/results/junit.xml><--logs-dir><${outside}/results/logs>${words}<--masters=3><--agents=0><./a b><--><echo 'a b'>`,
    );
    expect(await job.exited).toBe(7);
    // Nothing is in the project's folder that would go to the nodes, were it the platform.
    expect(existsSync(runner.at("work", ".cluster-e2e"))).toBe(cache === "false");
    expect(existsSync(runner.at("work", "install.sh"))).toBe(false);
    expect(await runner.spawn(["bash", "-ec", afterwards.join("\n")], environment).exited).toBe(0);
    expect(await Bun.file(runner.at("work", ".cluster-e2e", "cluster.zst")).text()).toBe("kept");
  },
);

test("before the command runs, the runner stops obeying what is printed, on both streams, with a token of its own", async () => {
  await using runner = await startRunner(`env; echo '::error::1'; echo '::error::2' >&2`);
  const outputs: string[] = [];
  for (const backend of ["container", "../::error::3"]) {
    const { steps } = await runner.play({ backend, command: "x" });
    outputs.push(steps[once]!.output);
  }
  const tokens = outputs.map((output) => stop.exec(output)?.[1]);
  expect(new Set(tokens).size).toBe(2);
  for (const [index, output] of outputs.entries()) {
    expect(output).toContain("::error::");
    expect(output.split(tokens[index]!)).toHaveLength(2);
  }
});

test("links that somebody has committed lead the results nowhere, in the action", async () => {
  await using runner = await startRunner(writesResults);
  await Bun.$`mkdir -p ${runner.at("work")} ${runner.at("victim")} && echo secret >${runner.at("victim", "key")}`;
  await symlink("../victim", runner.at("work", "cluster-results"));
  const { conclusion } = await runner.play({});
  expect(conclusion).toBe("failure");
  expect(await readdir(runner.at("victim"))).toEqual(["key"]);
  const artifact = runner.at("artifacts", "cluster-results-test-0-1");
  expect((await readdir(artifact)).toSorted()).toEqual(["junit.xml", "logs"]);
});

test("links that somebody has committed lead the results and the cache nowhere, in the job of GitLab", async () => {
  await using runner = await startRunner(
    `${writesResults.replace("; exit 7", "")}; echo cluster >"$7"`,
  );
  const { script, afterwards } = await gitlabJob();
  const environment = {
    ...gitlabVariables(runner),
    OPTIONS: "",
    PLATFORM: "x",
    COMMAND: "x",
    CACHE: "true",
  };
  for (const links of [
    "ln -s ../victim .cluster-e2e",
    "mkdir .cluster-e2e; ln -s ../../victim/key .cluster-e2e/cluster.zst",
  ]) {
    await Bun.$`rm -rf ${runner.at("work")} ${runner.at("victim")}; mkdir -p ${runner.at("work")} ${runner.at("victim")}`;
    await Bun.write(runner.at("victim", "key"), "secret");
    const lines = [`${links}; ln -s ../victim cluster-results`, ...script].join("\n");
    expect(await runner.spawn(["bash", "-eo", "pipefail", "-c", lines], environment).exited).toBe(
      0,
    );
    expect(await runner.spawn(["bash", "-ec", afterwards.join("\n")], environment).exited).toBe(0);
    expect(await readdir(runner.at("victim"))).toEqual(["key"]);
    expect(await Bun.file(runner.at("victim", "key")).text()).toBe("secret");
    expect((await readdir(runner.at("work", "cluster-results"))).toSorted()).toEqual([
      "junit.xml",
      "logs",
    ]);
    expect(await Bun.file(runner.at("work", ".cluster-e2e", "cluster.zst")).text()).toBe(
      "cluster\n",
    );
    expect((await lstat(runner.at("work", ".cluster-e2e", "cluster.zst"))).isFile()).toBe(true);
  }
});
