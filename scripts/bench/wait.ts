/** How long `wait` goes on once the platform is ready, how often it asks each node, and how often `create --wait` becomes root. */
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { type BenchCloud, startBenchCloud } from "./local-cloud.ts";
import { environmentOf, interleaved, type Row, rowOf, inSeconds, time } from "./measure.ts";
import { createSampleCluster, writeSshConfig } from "./sample-cluster.ts";

const rounds = 9;
const limitSeconds = 2;
/** Beyond a login, for nodes that are ready. */
const readySeconds = 0.3;
/** Its state, its next one, and once more when all nodes are ready. */
const mostQuestions = 3;
/** For the host key, and for all else. */
const mostSessions = 2;
const count = { name: "", factor: 1, digits: 1 };
const check = "/opt/cluster/bin/check";
/** The node's own check fails until this file exists. */
const marker = "/run/bench-ready";
/** A cluster is waited for much longer; after this time nothing about the wait changes any more. */
const settleMs = 4_000;

/** On one master and two agents with the sample platform. */
export async function* measureWait(executable: string): AsyncGenerator<Row> {
  await using cloud = await startBenchCloud("container", []);
  yield rowOf({
    what: "create --wait of a folder: sessions as root on the first master",
    values: [await rootSessions(executable, cloud)],
    unit: count,
    references: [mostSessions],
    by: "its limit",
    limit: 1,
  });
  await createSampleCluster(executable, cloud, { agents: 2 });
  const config = await writeSshConfig(executable, cloud);
  const onMaster = async (line: string): Promise<string> =>
    (await time(["ssh", "-F", config, "master_0", `sudo sh -c '${line}'`])).stdout;
  const commands = [
    ["ssh", "-F", config, "master_0", "true"],
    [executable, "wait"],
  ];
  const [logins = [], ready = []] = await interleaved(commands, rounds, cloud.environment);
  yield rowOf({
    what: "wait: 3 nodes that are ready",
    values: ready,
    unit: inSeconds,
    references: logins.map((login) => login + readySeconds),
    by: `a login by ssh and ${readySeconds} s`,
    limit: 1,
  });
  const script = `#!/bin/sh\\n[ -e ${marker} ] || exit 1\\nexec ${check}.real \\"\\$@\\"\\n`;
  await onMaster(`mv ${check} ${check}.real && printf "${script}" >${check} && chmod 755 ${check}`);
  const seconds: number[] = [];
  const questions: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    await onMaster(`rm -f ${marker}`);
    const waiting = startWait([executable, "wait", "-vv"], cloud.environment);
    await waiting.isWaiting;
    // At another moment between two questions each time.
    await Bun.sleep(settleMs + (round * 1_000) / rounds);
    const readyAtMs = Number(await onMaster(`touch ${marker} && date +%s%3N`));
    const { endedAtMs, asked } = await waiting.ended;
    seconds.push((endedAtMs - readyAtMs) / 1000);
    questions.push(asked);
  }
  yield rowOf({
    what: "wait: from ready to its end",
    values: seconds,
    unit: inSeconds,
    references: [limitSeconds],
    by: "its limit",
    limit: 1,
  });
  yield rowOf({
    what: "wait: questions to a node that becomes ready",
    values: questions,
    unit: count,
    references: [mostQuestions],
    by: "its limit",
    limit: 1,
  });
}

/** What sudo has logged on a cluster of its own. */
async function rootSessions(executable: string, cloud: BenchCloud): Promise<number> {
  const environment = { ...cloud.environment, CLUSTER_ID: "folder" };
  const counts = ["--agents", "1", "--public-agents", "0"];
  const words = ["--wait", "--linux-distribution", "debian-12", ...counts, "example:bare"];
  await time([executable, "create", ...words], environment);
  const config = await writeSshConfig(executable, { ...cloud, environment });
  const line = "sudo journalctl -q _COMM=sudo | grep -c COMMAND=";
  // Without the one that reads the log.
  return Number((await time(["ssh", "-F", config, "master_0", line])).stdout) - 1;
}

interface Waiting {
  readonly isWaiting: Promise<void>;
  readonly ended: Promise<{ readonly endedAtMs: number; readonly asked: number }>;
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
  const seen = { asked: 0 };
  createInterface(Readable.fromWeb(child.stderr as never)).on("line", (line) => {
    if (line.includes("e2e-readiness") && line.includes("master_0")) seen.asked += 1;
    if (seen.asked > 1) isWaiting.resolve();
  });
  const ended = child.exited.then((status) => {
    if (status !== 0) throw new Error(`wait ended with ${status}`);
    return { endedAtMs: Date.now(), ...seen };
  });
  return { isWaiting: Promise.race([isWaiting.promise, ended.then(() => {})]), ended };
}
