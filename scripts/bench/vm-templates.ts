/** What a template saves: time until SSH, and memory. And what it costs the first creation. Under tcg. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Row } from "./measure.ts";
import { inMegabytes, inSeconds, rowOf } from "./measure.ts";
import { type VmBench, createVms, openVmBench, startByHand } from "./vms.ts";

const sizes = [
  { nodes: 3, rounds: 5, limit: 0.15 },
  { nodes: 8, rounds: 2, limit: 0.12 },
] as const;
const firstRounds = 3;
const firstLimit = 1.15;
const secondLimit = 0.25;
/** For each of eight idle nodes of 2 GB. */
const memory = { nodes: 8, megabytes: 2048, limitMegabytes: 200 } as const;

export async function* measureVmTemplates(executable: string): AsyncGenerator<Row> {
  await using bench = await openVmBench(executable);
  yield await measureSecond(bench);
  yield await measureFirst(bench);
  for (const size of sizes) yield await measureCopies(bench, size);
  yield await measureMemory(bench);
}

/** The same folder twice, until it is ready: the first creation makes the template. */
async function measureSecond(bench: VmBench): Promise<Row> {
  const [first, second]: [number[], number[]] = [[], []];
  const creation = { nodes: 2, platform: "example:bare", options: ["--wait"] };
  for (let round = 0; round < firstRounds; round += 1) {
    const empty = { ...bench, cache: join(bench.folder, `second-${round}`) };
    for (const seconds of [first, second]) seconds.push((await createVms(empty, creation)).seconds);
  }
  return rowOf({
    what: "vms: create --wait of a folder, 1+1 nodes, again",
    values: second,
    unit: inSeconds,
    references: first,
    by: "the first time",
    limit: secondLimit,
  });
}

/** Creations that make the template, each with an empty cache. */
async function measureFirst(bench: VmBench): Promise<Row> {
  const [first, fresh]: [number[], number[]] = [[], []];
  for (let round = 0; round < firstRounds; round += 1) {
    const empty = { ...bench, cache: join(bench.folder, `cache-${round}`) };
    first.push((await createVms(empty, { nodes: 3 })).login);
    fresh.push((await createVms(empty, { nodes: 3, options: ["--fresh-boot"] })).login);
  }
  return rowOf({
    what: "vms: the first creation of 3 nodes, which makes the template, until SSH",
    values: first,
    unit: inSeconds,
    references: fresh,
    by: "--fresh-boot",
    limit: firstLimit,
  });
}

/** Later creations than the one that makes the template. */
async function measureCopies(
  bench: VmBench,
  {
    nodes,
    rounds,
    limit,
  }: { readonly nodes: number; readonly rounds: number; readonly limit: number },
): Promise<Row> {
  const [login, byHand]: [number[], number[]] = [[], []];
  const { machines } = await createVms(bench, { nodes, options: ["--fresh-boot"] });
  await createVms(bench, { nodes: 1 });
  for (let round = 0; round < rounds; round += 1) {
    login.push((await createVms(bench, { nodes })).login);
    byHand.push(await startByHand(machines, bench.image));
  }
  return rowOf({
    what: `vms: ${nodes} copies of a template until SSH`,
    values: login,
    unit: inSeconds,
    references: byHand,
    by: "the same QEMU booted by hand",
    limit,
  });
}

async function measureMemory(bench: VmBench): Promise<Row> {
  const { nodes, megabytes, limitMegabytes } = memory;
  const used: number[] = [];
  const whileThere = async (commands: readonly string[]): Promise<void> => {
    const each = await Promise.all(commands.map(ownMegabytes));
    used.push(each.reduce((sum, one) => sum + one, 0) / nodes);
  };
  await createVms(bench, { nodes: 1, megabytes });
  await createVms(bench, { nodes, megabytes, whileThere });
  return rowOf({
    what: `vms: memory of each of ${nodes} idle nodes of 2 GB, beside the template`,
    values: used,
    unit: inMegabytes,
    references: [limitMegabytes],
    by: "its limit",
    limit: 1,
  });
}

/** What no other process shares. */
async function ownMegabytes(command: string): Promise<number> {
  const pidFile = / -pidfile (\S+)/.exec(command)?.[1] ?? "";
  const pid = (await readFile(pidFile, "utf8")).trim();
  const rollup = await readFile(`/proc/${pid}/smaps_rollup`, "utf8");
  const own = [...rollup.matchAll(/^Private_(?:Clean|Dirty):\s+(\d+) kB$/gm)];
  return own.reduce((sum, [, kilobytes]) => sum + Number(kilobytes) / 1000, 0);
}
