/**
 * Plays a runner of GitHub for the steps of our composite action. GitHub's own evaluator reads the expressions. The actions that the steps use are
 * played too: the cache is a folder, and so is what is uploaded.
 */
import { cp, mkdir, readFile, readdir, stat, utimes } from "node:fs/promises";
import { join, resolve } from "node:path";
import { Evaluator, Lexer, Parser, data } from "@actions/expressions";
import { parse } from "yaml";

export const actionFolder = join(import.meta.dir, "..", "..", "scripts", "ci");

export interface StepProcess {
  readonly exited: Promise<number>;
  /** Everything written so far. */
  output(): string;
  kill(signal: NodeJS.Signals): Promise<void>;
}

type Variables = Readonly<Record<string, string>>;

/** Where steps run. Starts `sh -e FILE`, as a runner does for the shell "sh". */
export type StartStep = (file: string, variables: Variables) => StepProcess;

interface Step {
  readonly name: string;
  readonly id?: string;
  readonly if?: string;
  readonly run?: string;
  readonly uses?: string;
  readonly env?: Variables;
  readonly with?: Variables;
  readonly "continue-on-error"?: boolean;
}

export interface Action {
  readonly inputs: Readonly<
    Record<string, { readonly default?: string; readonly required?: boolean }>
  >;
  readonly runs: { readonly steps: readonly Step[] };
}

export const readAction = async (): Promise<Action> =>
  parse(await readFile(join(actionFolder, "action.yml"), "utf8")) as Action;

export interface JobRequest {
  /** Holds everything of the runner: `work`, `temp`, `caches`, `artifacts`, and the files that steps write to. It outlives the job. */
  readonly folder: string;
  readonly start: StartStep;
  readonly inputs: Variables;
  readonly runId?: string;
  /** What happens while a step runs, by its name. Resolves with true if the job was cancelled. */
  readonly during?: Readonly<Record<string, (step: StepProcess) => Promise<boolean>>>;
}

export interface PlayedJob {
  readonly conclusion: "success" | "failure" | "cancelled";
  /** The steps that ran, by name: their exit code and what they wrote. */
  readonly steps: Readonly<Record<string, { readonly status: number; readonly output: string }>>;
  readonly summary: string;
}

/** Plays the action as the only step of a job. */
export async function playJob(job: JobRequest): Promise<PlayedJob> {
  const { folder, start, during = {}, runId = "1" } = job;
  const at = (...names: readonly string[]): string => join(folder, ...names);
  const action = await readAction();
  for (const name of ["work", "temp", "caches", "artifacts"])
    await mkdir(at(name), { recursive: true });
  for (const name of ["path", "env", "summary"]) await Bun.write(at(name), "");
  const defaults = Object.entries(action.inputs).map(
    ([name, { default: text = "" }]) => [name, text] as const,
  );
  const inputs = { ...Object.fromEntries(defaults), ...job.inputs };
  const state = { conclusion: "success" as PlayedJob["conclusion"] };
  const outputs: Record<string, { readonly outputs: Variables }> = {};
  const steps: Record<string, { status: number; output: string }> = {};
  const github = { run_id: runId, run_attempt: "1", job: "test", action_ref: inputs["release"] };
  // What GitHub says of a job without a matrix.
  const strategy = { "job-index": 0 };
  const evaluated = (text: string) =>
    evaluate(text, { inputs, github, strategy, steps: outputs }, state.conclusion);
  const filled = (texts: Variables = {}): Variables =>
    Object.fromEntries(
      Object.entries(texts).map(([name, text]) => [
        name,
        text.replaceAll(/\$\{\{(.*?)\}\}/g, (_all, expression: string) =>
          evaluated(expression).coerceString(),
        ),
      ]),
    );
  const runStep = async (step: Step): Promise<number> => {
    if (step.uses !== undefined)
      return playUsed(step.uses, { given: filled(step.with), step, outputs, folder });
    const file = at("step.sh");
    await Bun.write(file, step.run ?? "");
    await Bun.write(at("output"), "");
    const process = start(file, {
      GITHUB_ACTION_PATH: actionFolder,
      GITHUB_ENV: at("env"),
      GITHUB_OUTPUT: at("output"),
      GITHUB_PATH: at("path"),
      GITHUB_STEP_SUMMARY: at("summary"),
      RUNNER_TEMP: at("temp"),
      ...filled(step.env),
    });
    if ((await during[step.name]?.(process)) === true) state.conclusion = "cancelled";
    const status = await process.exited;
    steps[step.name] = { status, output: process.output() };
    outputs[step.id ?? step.name] = { outputs: pairsOf(await readFile(at("output"), "utf8")) };
    return status;
  };
  for (const step of action.runs.steps) {
    const condition = step.if?.replace(/^\$\{\{(.*)\}\}$/, "$1") ?? "success()";
    const whole = /\b(?:success|failure|cancelled|always)\(/.test(condition)
      ? condition
      : `success() && (${condition})`;
    if (evaluated(whole).coerceString() !== "true") continue;
    const status = await runStep(step);
    if (status !== 0 && step["continue-on-error"] !== true && state.conclusion === "success")
      state.conclusion = "failure";
  }
  return { conclusion: state.conclusion, steps, summary: await readFile(at("summary"), "utf8") };
}

interface PlayedStep {
  readonly status: number;
  readonly output: string;
}

export interface ClusterJob extends Pick<JobRequest, "folder" | "start" | "inputs"> {
  /** The Node that the runner has for actions. */
  readonly node: string;
  /** The step of the job behind the action. */
  readonly lines: string;
  /** What happens while the action creates the cluster. */
  readonly during?: (step: StepProcess) => Promise<unknown>;
}

/** Plays a job that begins with the action of `scripts/ci/cluster`: its part before, the job's step, its part after. */
export async function playClusterJob({ folder, start, node, lines, ...job }: ClusterJob) {
  const at = (...names: readonly string[]): string => join(folder, ...names);
  for (const name of ["work", "temp"]) await mkdir(at(name), { recursive: true });
  for (const name of ["path", "env", "summary", "output", "state"]) await Bun.write(at(name), "");
  const files = ["env", "output", "path", "state"].map((name) => [
    `GITHUB_${name.toUpperCase()}`,
    at(name),
  ]);
  const { inputs: declared } = parse(
    await readFile(join(actionFolder, "cluster", "action.yml"), "utf8"),
  ) as Action;
  const inputs = Object.keys(declared).map((name) => [
    `INPUT_${name.toUpperCase()}`,
    job.inputs[name] ?? declared[name]?.default ?? "",
  ]);
  const common = { RUNNER_TEMP: at("temp"), GITHUB_STEP_SUMMARY: at("summary") };
  const read = async (name: string): Promise<Variables> =>
    pairsOf(await readFile(at(name), "utf8"));
  const play = async (text: string, variables: Variables, during?: ClusterJob["during"]) => {
    const file = at("step.sh");
    await Bun.write(file, text);
    const step = start(file, { ...common, ...variables });
    await during?.(step);
    return { status: await step.exited, output: step.output() } satisfies PlayedStep;
  };
  // A runner starts Node itself. A shell such as dash passes no variable on whose name has a hyphen.
  const checksum = `INPUT_INSTALL-SHA256=${job.inputs["install-sha256"]}`;
  const action = `exec env '${checksum}' ${node} ${actionFolder}/cluster/run.mjs`;
  const before = await play(action, Object.fromEntries([...files, ...inputs]), job.during);
  const step = before.status === 0 ? await play(lines, await read("env")) : undefined;
  const state = Object.entries(await read("state")).map(([name, found]) => [
    `STATE_${name}`,
    found,
  ]);
  // The runner runs the second part only if the first one has begun.
  const after = await play(action, Object.fromEntries([...files, ...inputs, ...state]));
  return { before, step, after, outputs: await read("output") };
}

function evaluate(
  text: string,
  contexts: object,
  conclusion: PlayedJob["conclusion"],
): data.ExpressionData {
  const answers: Readonly<Record<string, boolean>> = {
    success: conclusion === "success",
    failure: conclusion === "failure",
    cancelled: conclusion === "cancelled",
    always: true,
  };
  const functions = Object.entries(answers).map(([name, answer]) => ({
    name,
    minArgs: 0,
    maxArgs: 0,
    call: () => new data.BooleanData(answer),
  }));
  const expression = new Parser(
    new Lexer(text).lex().tokens,
    Object.keys(contexts),
    functions,
  ).parse();
  const known = JSON.parse(JSON.stringify(contexts), data.reviver) as data.Dictionary;
  return new Evaluator(
    expression,
    known,
    new Map(functions.map((each) => [each.name, each])),
  ).evaluate();
}

const pairsOf = (text: string): Variables =>
  Object.fromEntries(
    [...text.matchAll(/^([\w-]+)=(.*)$/gm)].map(([, name = "", found = ""]) => [name, found]),
  );

interface Used {
  readonly given: Variables;
  readonly step: Step;
  readonly outputs: Record<string, { readonly outputs: Variables }>;
  readonly folder: string;
}

/** Plays an action of GitHub's. Resolves with its exit code. */
async function playUsed(uses: string, { given, step, outputs, folder }: Used): Promise<number> {
  const { path = "", key = "", name = "" } = given;
  const caches = join(folder, "caches");
  switch (uses.replace(/@[0-9a-f]{40}$/, "")) {
    case "actions/cache/restore": {
      const wanted = [key, ...(given["restore-keys"] ?? "").split("\n")].filter(
        (each) => each !== "",
      );
      const found = await newestCache(caches, wanted);
      if (found !== undefined)
        await cp(join(caches, found), path, { recursive: true, preserveTimestamps: true });
      outputs[step.id ?? step.name] = { outputs: { "cache-hit": String(found === key) } };
      return 0;
    }
    case "actions/cache/save":
      // A key is written once.
      await cp(path, join(caches, key), {
        recursive: true,
        preserveTimestamps: true,
        force: false,
      });
      await utimes(join(caches, key), new Date(), new Date());
      return 0;
    case "actions/upload-artifact":
      if ((await stat(resolve(folder, "work", path)).catch(() => undefined)) === undefined)
        return 0;
      await cp(resolve(folder, "work", path), join(folder, "artifacts", name), { recursive: true });
      return 0;
    default:
      throw new Error(`${uses} isn't played`);
  }
}

/** The first key that matches wins, whole or as the beginning of a key; of several caches, the newest. */
async function newestCache(caches: string, wanted: readonly string[]): Promise<string | undefined> {
  const names = await readdir(caches);
  const times = new Map(
    await Promise.all(
      names.map(async (name) => [name, (await stat(join(caches, name))).mtimeMs] as const),
    ),
  );
  for (const key of wanted) {
    const matching = names.filter((name) => name.startsWith(key));
    const [newest] = matching.toSorted(
      (one, other) => (times.get(other) ?? 0) - (times.get(one) ?? 0),
    );
    if (newest !== undefined) return newest;
  }
  return undefined;
}
