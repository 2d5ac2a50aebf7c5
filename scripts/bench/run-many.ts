/** What `run --node all true` takes on many nodes, against Debian's clush with the same options for ssh. Both log in to each node. */
import { createScripted, startAnsweringCloud } from "./create.ts";
import type { BenchCloud } from "./local-cloud.ts";
import { type Row, type Timing, inMegabytes, inSeconds, rowOf, time } from "./measure.ts";
import { writeSshConfig } from "./sample-cluster.ts";

const rounds = 5;
const compared = { nodes: 100, limit: 0.5 } as const;
const largest = 1000;
/** As many as `run` logs in to at once. */
const fanout = "64";

/** On machines in one process, which all programs share. */
export async function measureRunMany(executable: string): Promise<readonly Row[]> {
  if (Bun.which("clush") === null)
    throw new Error("There is no clush: apt-get install clustershell");
  return [...(await measureCompared(executable)), ...(await measureLargest(executable))];
}

async function measureCompared(executable: string): Promise<readonly Row[]> {
  await using cloud = await startAnsweringCloud(0);
  await createScripted(executable, cloud, compared.nodes);
  const clush = await clushWords(executable, cloud);
  const [own, others]: [number[], number[]] = [[], []];
  for (let round = 0; round < rounds; round += 1) {
    own.push((await runOnAll(executable, cloud)).seconds);
    others.push((await time(clush, cloud.environment)).seconds);
  }
  const what = `${compared.nodes} nodes: run --node all true`;
  const limits = { limit: compared.limit, unit: inSeconds, references: others, by: "clush" };
  return [rowOf({ what, values: own, ...limits })];
}

/** Once. The peak has no reference of its own: it is that of a single node. */
async function measureLargest(executable: string): Promise<readonly Row[]> {
  await using cloud = await startAnsweringCloud(0);
  await createScripted(executable, cloud, largest);
  const others = await time(await clushWords(executable, cloud), cloud.environment);
  const one = await time([executable, "run", "--node", "master_0", "true"], cloud.environment);
  const all = await runOnAll(executable, cloud);
  const what = `${largest} nodes: run --node all true`;
  return [
    rowOf({
      what,
      values: [all.seconds],
      unit: inSeconds,
      references: [others.seconds],
      by: "clush",
    }),
    rowOf({
      what: `${what}, peak memory`,
      values: [all.peakMegabytes],
      unit: inMegabytes,
      references: [one.peakMegabytes],
      by: "run on one node",
    }),
  ];
}

const runOnAll = async (executable: string, cloud: BenchCloud): Promise<Timing> =>
  time([executable, "run", "--node", "all", "true"], cloud.environment);

async function clushWords(executable: string, cloud: BenchCloud): Promise<readonly string[]> {
  const config = await writeSshConfig(executable, cloud);
  const names = (await Bun.file(config).text()).matchAll(/^Host (\S+)$/gm);
  const nodes = [...names].map(([, name]) => name).join(",");
  return ["clush", "-S", "-f", fanout, "-o", `-F ${config}`, "-w", nodes, "true"];
}
