/**
 * Shows the main flow on EC2, in the account whose credentials are set, and compares EC2's answers with those of the local cloud that the
 * tests use. Asks before it launches anything, removes everything also after a failure and Ctrl-C, and writes a report without secrets to
 * FILE (dist/ec2-report.md). `./scripts/demo ec2` builds what this needs. The exit code is 1 if a command failed, if EC2 answered otherwise
 * than the local cloud, or if anything is left; 130 after Ctrl-C.
 *
 * Usage: bun scripts/demo-ec2.ts [--yes] [--cloud-region REGION] [--platform FOLDER] [--report FILE]
 */
import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { homedir, hostname, tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { parseArgs } from "node:util";
import { openApi } from "../src/backend/cloud/api/open-api.ts";
import { tagNames } from "../src/backend/cloud/tags.ts";
import { type Environment, systemClock } from "../src/system/runtime.ts";
import { silentProgress } from "../test/support/silent-progress.ts";
import { LocalCloud } from "../test/local-cloud/local-cloud.ts";
import { type Observations, observe } from "./demo-ec2/observe.ts";
import { type Ran, type Report, problemsOf, reportText } from "./demo-ec2/report.ts";
import { type Requested, foundByTags, readRequested, removeAll } from "./demo-ec2/remove-all.ts";
import { textMask } from "./demo-ec2/text-mask.ts";

const { values } = parseArgs({
  options: {
    yes: { type: "boolean", default: false },
    "cloud-region": { type: "string", default: "us-west-2" },
    platform: { type: "string", default: "example:slurm" },
    report: { type: "string", default: join(import.meta.dir, "..", "dist", "ec2-report.md") },
  },
});
const { "cloud-region": region, platform } = values;
const root = join(import.meta.dir, "..");
const clusterId = `demo-${randomBytes(4).toString("hex")}`;
const probeId = `${clusterId}-probe`;
const work = await mkdtemp(join(tmpdir(), "cluster-e2e-demo."));
const environment: Environment = {
  ...process.env,
  PATH: `${join(root, "dist")}${delimiter}${process.env["PATH"]}`,
  XDG_STATE_HOME: join(work, "state"),
};
const interrupt = new AbortController();
/** What the comparison has requested from EC2. */
const probe: Requested = { clientTokens: new Set(), groupIds: new Set() };
const ran: Ran[] = [];

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
const say = (text: string): void => console.error(text);
const openCloud = async (changes: Environment, chosen = region) =>
  (
    await openApi(
      {
        environment: { ...environment, ...changes },
        clock: systemClock,
        progress: silentProgress,
        signal: never,
      },
      chosen,
    )
  )(chosen);
const never = new AbortController().signal;

/** Shows a command as a user would type it, and runs it. Throws if it fails or is interrupted. */
async function show(...words: readonly string[]): Promise<string> {
  interrupt.signal.throwIfAborted();
  const line = ["cluster-cloud", ...words].join(" ");
  say(`\n$ ${line}`);
  const startedMs = Date.now();
  // In a session of its own: only this program passes Ctrl-C on, and only once.
  const child = Bun.spawn(["cluster-cloud", ...words], {
    env: { ...environment },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    detached: true,
  });
  const pass = (): void => child.kill("SIGINT");
  interrupt.signal.addEventListener("abort", pass);
  const output: string[] = [];
  const follow = async (stream: ReadableStream<Uint8Array>): Promise<void> => {
    for await (const part of stream.pipeThrough(new TextDecoderStream())) {
      output.push(part);
      process.stderr.write(part);
    }
  };
  await Promise.all([follow(child.stdout), follow(child.stderr), child.exited]);
  interrupt.signal.removeEventListener("abort", pass);
  const status = child.signalCode ?? child.exitCode;
  ran.push({
    line,
    status: String(status),
    seconds: (Date.now() - startedMs) / 1000,
    output: output.join(""),
  });
  interrupt.signal.throwIfAborted();
  if (status !== 0) throw new Error(`${line} ended with ${status}`);
  return output.join("");
}

function ask(): void {
  say(`
The demo launches two m5.large instances, and later one t3.micro. It ends them after about ten minutes, which costs about
5 cents. If it cannot end them, they end by themselves after two hours, which costs about 50 cents.`);
  if (values.yes) return;
  if (!process.stdin.isTTY)
    throw new Error("there is no terminal to ask on: pass --yes to launch the machines");
  if (prompt("Launch the machines? [y/N]")?.trim().toLowerCase() !== "y")
    throw new Error("nothing was launched");
}

const here = ["--cloud-region", region];
const cluster = [...here, "--cluster-id", clusterId];

async function mainFlow(): Promise<void> {
  const counts = ["--agents", "1", "--public-agents", "0", "--linux-distribution", "debian-12"];
  await show("--version");
  await show("doctor", ...here);
  await show("create", "--dry-run", ...cluster, ...counts, platform);
  ask();
  await show("create", ...cluster, ...counts, platform);
  await show("wait", ...cluster);
  await show(
    "run",
    ...cluster,
    ...(platform === "example:slurm" ? ["srun", "hostname"] : ["hostname"]),
  );
  await show("run", ...cluster, "--node", "agent_0", "hostname");
  await show("list", ...here);
  await show("inspect", ...cluster);
  await show("logs", ...cluster, "--output-dir", join(work, "logs"));
}

const stranger = {
  CLOUD_ACCESS_KEY_ID: "AKIAIOSFODNN7EXAMPLE",
  CLOUD_SECRET_ACCESS_KEY: "none",
  CLOUD_SESSION_TOKEN: "",
};

async function observeBoth(): Promise<readonly [Observations, Observations]> {
  say("\nComparing EC2's answers with those of the local cloud, with one small instance in each …");
  const directory = join(work, "cloud");
  await mkdir(directory);
  await using local = await LocalCloud.start({ driver: "in-process", directory, sshPort: 2022 });
  const observeIn = async (
    changes: Environment,
    where: string,
    requested: Requested,
  ): Promise<Observations> => {
    const api = await openCloud(changes, where);
    const strangers = () => openCloud({ ...changes, ...stranger }, where);
    return await observe({ api, strangers, mark: probeId, requested }, interrupt.signal);
  };
  // Neither is cut off when the other one fails.
  const both = [
    observeIn({}, region, probe),
    observeIn(local.environment, local.region, { clientTokens: new Set(), groupIds: new Set() }),
  ] as const;
  await Promise.allSettled(both);
  return await Promise.all(both);
}

for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.on(name, () => {
    say(`\n${name}: ending, and removing what was launched …`);
    interrupt.abort(new Error(`interrupted by ${name}`));
  });
}
const state = { isObserving: false };
const report: Report = {
  region,
  platform,
  endpoint: process.env["AWS_ENDPOINT_URL_EC2"],
  ran,
  observations: undefined,
  failure: undefined,
  left: [],
};
try {
  await mainFlow();
  state.isObserving = true;
  report.observations = await observeBoth();
  state.isObserving = false;
} catch (error) {
  report.failure = textOf(error);
}
// Before the first creation, nothing can be there.
if (ran.some(({ line }) => line.includes(" create ") && !line.includes("--dry-run"))) {
  say("\nRemoving everything …");
  try {
    const api = await openCloud({});
    const { clientTokens, groupIds } = await readRequested(join(work, "state"));
    const requested = {
      clientTokens: clientTokens.union(probe.clientTokens),
      groupIds: groupIds.union(probe.groupIds),
    };
    const left = await removeAll(api, requested, { isSure: !state.isObserving });
    report.left = [...left, ...(await foundByTags(api, [clusterId, probeId]))];
  } catch (error) {
    report.left = [`unknown, because ${textOf(error)}; look for the tag ${tagNames.clusterId}`];
  }
}
const mask = textMask(environment, {
  "<work>": work,
  "<clone>": root,
  "<tmp>": tmpdir(),
  "~": homedir(),
  "<host>": hostname(),
});
await Bun.write(values.report, mask(reportText(report)));
await rm(work, { recursive: true });
const problems = problemsOf(report);
say(
  problems.length === 0
    ? "\nEverything works, and EC2 answers as expected."
    : `\n${problems.join("\n")}`,
);
say(
  `Left in the account: ${report.left.length === 0 ? "nothing" : report.left.join(", ")}. Report: ${values.report}`,
);
process.exitCode = interrupt.signal.aborted ? 130 : Math.min(problems.length, 1);
