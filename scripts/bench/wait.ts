/** How long `wait` goes on once the platform is ready, and how often it asks each node. */
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { startBenchCloud } from "./local-cloud.ts";
import { environmentOf, type Row, rowOf, inSeconds, time } from "./measure.ts";
import { createSampleCluster, writeSshConfig } from "./sample-cluster.ts";

const rounds = 9;
const limitSeconds = 2;
const check = "/opt/cluster/bin/check";
/** The node's own check fails until this file exists. */
const marker = "/run/bench-ready";
/** A cluster is waited for much longer; after this time nothing about the wait changes any more. */
const settleMs = 4_000;

/** On one master and one agent with the sample platform. */
export async function measureWait(executable: string): Promise<readonly Row[]> {
  await using cloud = await startBenchCloud("container", []);
  await createSampleCluster(executable, cloud, { agents: 1 });
  const config = await writeSshConfig(executable, cloud);
  const onMaster = async (line: string): Promise<string> =>
    (await time(["ssh", "-F", config, "master_0", `sudo sh -c '${line}'`])).stdout;
  const script = `#!/bin/sh\\n[ -e ${marker} ] || exit 1\\nexec ${check}.real \\"\\$@\\"\\n`;
  await onMaster(`mv ${check} ${check}.real && printf "${script}" >${check} && chmod 755 ${check}`);
  const seconds: number[] = [];
  const gaps: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    await onMaster(`rm -f ${marker}`);
    const waiting = startWait([executable, "wait", "-vv"], cloud.environment);
    await waiting.isWaiting;
    // At another moment between two questions each time.
    await Bun.sleep(settleMs + (round * 1_000) / rounds);
    const readyAtMs = Number(await onMaster(`touch ${marker} && date +%s%3N`));
    const { endedAtMs, askedAtMs } = await waiting.ended;
    seconds.push((endedAtMs - readyAtMs) / 1000);
    gaps.push(...askedAtMs.slice(1).map((atMs, index) => (atMs - (askedAtMs[index] ?? 0)) / 1000));
  }
  return [
    rowOf({
      what: "wait: from ready to its end",
      values: seconds,
      unit: inSeconds,
      references: [limitSeconds],
      by: "its limit",
      limit: 1,
    }),
    rowOf({
      what: "wait: questions per node and second, on average",
      values: [gaps.length / gaps.reduce((sum, gap) => sum + gap, 0)],
      unit: { name: "", factor: 1, digits: 2 },
      references: [1],
      by: "its limit",
      // The moments are those at which its output arrives here.
      limit: 1.05,
    }),
  ];
}

interface Waiting {
  readonly isWaiting: Promise<void>;
  readonly ended: Promise<{ readonly endedAtMs: number; readonly askedAtMs: readonly number[] }>;
}

function startWait(
  argv: readonly string[],
  environment: Readonly<Record<string, string>>,
): Waiting {
  const child = Bun.spawn([...argv], {
    env: environmentOf(environment),
    stdio: ["ignore", "ignore", "pipe"],
  });
  const isWaiting = Promise.withResolvers<void>();
  const askedAtMs: number[] = [];
  createInterface(Readable.fromWeb(child.stderr as never)).on("line", (line) => {
    if (line.includes("e2e-readiness") && line.includes("master_0")) askedAtMs.push(Date.now());
    if (askedAtMs.length > 1) isWaiting.resolve();
  });
  const ended = child.exited.then((status) => {
    if (status !== 0) throw new Error(`wait ended with ${status}`);
    return { endedAtMs: Date.now(), askedAtMs };
  });
  return { isWaiting: Promise.race([isWaiting.promise, ended.then(() => {})]), ended };
}
