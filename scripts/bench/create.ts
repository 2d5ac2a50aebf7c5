/** What `create` adds to the time that machines need, its API calls and its peak memory, on in-process machines. */
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BenchCloud, startBenchCloud } from "./local-cloud.ts";
import type { Row } from "./measure.ts";
import { type Timing, median, inMegabytes, rowOf, inSeconds, time } from "./measure.ts";

const bootDelayMs = 2000;
/** How long the local cloud leaves a new instance `pending`. */
const pendingMs = 150;
const sizes = [3, 30, 100, 300, 1000] as const;
const rounds = 5;

/** What the machines answer: the first match wins, the last one matches everything. */
const answers = [
  { pattern: "e2e-first-contact", replaceHostKey: true },
  { pattern: "artifact\\.sh --version", stdout: '{"variant":"oss","version":"1"}\n' },
  { pattern: "artifact\\.sh --genconf", stdout: "cluster_install.sh\n" },
  { pattern: "resolv\\.conf", stdout: "nameserver 10.0.0.2\n" },
  { pattern: "", readsStdin: true },
];

export interface CreateMeasurement {
  readonly nodes: number;
  readonly seconds: number;
  readonly addedSeconds: number;
  readonly peakMegabytes: number;
  readonly apiCalls: Readonly<Record<string, number>>;
  /** All but the describes that poll. */
  readonly callsWithoutPolling: number;
}

/** Resolves with what each round measured, of each size. */
export async function measureCreate(
  executable: string,
): Promise<readonly (readonly CreateMeasurement[])[]> {
  const bySize: CreateMeasurement[][] = sizes.map(() => []);
  for (let round = 0; round < rounds; round += 1) {
    for (const [index, nodes] of sizes.entries())
      bySize[index]?.push(await measureSize(executable, nodes));
  }
  return bySize;
}

/** A local cloud whose machines are in its process, and answer as a creation expects it. */
export async function startAnsweringCloud(delayMs: number): Promise<BenchCloud> {
  const answersFile = join(tmpdir(), `cluster-e2e-bench-answers-${process.pid}.json`);
  await Bun.write(answersFile, JSON.stringify(answers));
  const cloud = await startBenchCloud("in-process", [
    "--boot-delay-ms",
    String(delayMs),
    "--answers",
    answersFile,
  ]);
  await Bun.file(answersFile).delete();
  return cloud;
}

/** Creates a cluster with one master, one public agent, and agents otherwise. */
export async function createScripted(
  executable: string,
  cloud: BenchCloud,
  nodes: number,
): Promise<Timing> {
  const artifact = join(cloud.folder, "artifact.sh");
  await Bun.write(artifact, "#!/bin/bash\n# variant: oss\n");
  const words = [
    "--agents",
    String(nodes - 2),
    "--public-agents",
    "1",
    "--linux-distribution",
    "debian-12",
    artifact,
  ];
  return time([executable, "create", "--variant", "oss", ...words], cloud.environment);
}

async function measureSize(executable: string, nodes: number): Promise<CreateMeasurement> {
  await using cloud = await startAnsweringCloud(bootDelayMs);
  const { seconds, peakMegabytes } = await createScripted(executable, cloud, nodes);
  const apiCalls = await cloud.requestCounts();
  const total = Object.values(apiCalls).reduce((sum, count) => sum + count, 0);
  return {
    nodes,
    seconds,
    addedSeconds: seconds - (bootDelayMs + pendingMs) / 1000,
    peakMegabytes,
    apiCalls,
    callsWithoutPolling: total - (apiCalls["DescribeInstances"] ?? 0),
  };
}

/** What the largest cluster may add. */
const largest = {
  nodes: 1000,
  addedSeconds: 4,
  peakMegabytes: 400,
  callsWithoutPolling: 12,
} as const;

/** As rows: the whole time, by the time that the machines need; for the largest cluster, also what is added and used, by its limits. */
export function createRows(bySize: readonly (readonly CreateMeasurement[])[]): readonly Row[] {
  return sizes.flatMap((nodes, index) => {
    const measured = bySize[index] ?? [];
    return [timeRow(nodes, measured), ...(nodes === largest.nodes ? limitRows(measured) : [])];
  });
}

function timeRow(nodes: number, measured: readonly CreateMeasurement[]): Row {
  const of = (figure: (measurement: CreateMeasurement) => number): string =>
    median(measured.map(figure)).toFixed(0);
  const peak = of(({ peakMegabytes }) => peakMegabytes);
  const calls = of(({ callsWithoutPolling }) => callsWithoutPolling);
  return rowOf({
    what: `create: ${nodes} nodes, peak ${peak} MB, ${calls} API calls without polling`,
    values: measured.map(({ seconds }) => seconds),
    unit: inSeconds,
    references: [(bootDelayMs + pendingMs) / 1000],
    by: "scripted delays",
  });
}

function limitRows(measured: readonly CreateMeasurement[]): readonly Row[] {
  const figures = [
    { name: "time added", figure: "addedSeconds", unit: inSeconds },
    { name: "peak memory", figure: "peakMegabytes", unit: inMegabytes },
    {
      name: "API calls without polling",
      figure: "callsWithoutPolling",
      unit: { name: "", factor: 1, digits: 0 },
    },
  ] as const;
  return figures.map(({ name, figure, unit }) =>
    rowOf({
      what: `create: ${largest.nodes} nodes, ${name}`,
      values: measured.map((measurement) => measurement[figure]),
      unit,
      references: [largest[figure]],
      by: "its limit",
      limit: 1,
    }),
  );
}
