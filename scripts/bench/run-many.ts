/** What `run --node all true` takes on many nodes, with logins and over kept ones, against Debian's clush with logins and the same options for ssh. */
import { createScripted, startAnsweringCloud } from "./create.ts";
import type { BenchCloud } from "./local-cloud.ts";
import { type Row, type Timing, inMegabytes, inSeconds, rowOf, time } from "./measure.ts";
import { closeMasters, mastersOpen, writeSshConfig } from "./sample-cluster.ts";

const rounds = 5;
const compared = { nodes: 100, loginLimit: 1, keptLimit: 0.3 } as const;
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
  const [own, kept, others]: [number[], number[], number[]] = [[], [], []];
  for (let round = 0; round < rounds; round += 1) {
    own.push((await runWithLogins(executable, cloud)).seconds);
    await mastersOpen(cloud, compared.nodes);
    kept.push((await runOnAll(executable, cloud)).seconds);
    await closeMasters(cloud);
    others.push((await time(clush, cloud.environment)).seconds);
  }
  const what = `${compared.nodes} nodes: run --node all true`;
  const shared = { unit: inSeconds, references: others, by: "clush, with logins" };
  return [
    rowOf({ what: `${what}, with logins`, values: own, limit: compared.loginLimit, ...shared }),
    rowOf({
      what: `${what}, over kept logins`,
      values: kept,
      limit: compared.keptLimit,
      ...shared,
    }),
  ];
}

/** Once. The peak has no reference of its own: it is that of a single node. */
async function measureLargest(executable: string): Promise<readonly Row[]> {
  await using cloud = await startAnsweringCloud(0);
  await createScripted(executable, cloud, largest);
  const others = await time(await clushWords(executable, cloud), cloud.environment);
  const one = await time([executable, "run", "--node", "master_0", "true"], cloud.environment);
  const all = await runWithLogins(executable, cloud);
  const what = `${largest} nodes: run --node all true, with logins`;
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

async function runWithLogins(executable: string, cloud: BenchCloud): Promise<Timing> {
  await closeMasters(cloud);
  return await runOnAll(executable, cloud);
}

const runOnAll = async (executable: string, cloud: BenchCloud): Promise<Timing> =>
  time([executable, "run", "--node", "all", "true"], cloud.environment);

async function clushWords(executable: string, cloud: BenchCloud): Promise<readonly string[]> {
  const config = await writeSshConfig(executable, cloud);
  const names = (await Bun.file(config).text()).matchAll(/^Host (\S+)$/gm);
  const nodes = [...names].map(([, name]) => name).join(",");
  return ["clush", "-S", "-f", fanout, "-o", `-F ${config}`, "-w", nodes, "true"];
}
