/** What `create` adds to the time that machines need, its API calls and its peak memory, on in-process machines. */
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startBenchCloud } from "./local-cloud.ts";
import type { Row } from "./measure.ts";
import { time } from "./measure.ts";

const bootDelayMs = 2000;
/** How long the local cloud leaves a new instance `pending`. */
const pendingMs = 150;
const sizes = [3, 30, 100, 300, 1000] as const;

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

export async function measureCreate(executable: string): Promise<readonly CreateMeasurement[]> {
  const measurements: CreateMeasurement[] = [];
  for (const nodes of sizes) measurements.push(await measureSize(executable, nodes));
  return measurements;
}

async function measureSize(executable: string, nodes: number): Promise<CreateMeasurement> {
  const answersFile = join(tmpdir(), `cluster-e2e-bench-answers-${process.pid}.json`);
  await Bun.write(answersFile, JSON.stringify(answers));
  await using cloud = await startBenchCloud("in-process", [
    "--boot-delay-ms",
    String(bootDelayMs),
    "--answers",
    answersFile,
  ]);
  const artifact = join(cloud.folder, "artifact.sh");
  await Bun.write(artifact, "#!/bin/bash\n# variant: oss\n");
  const words = ["--agents", String(nodes - 2), "--public-agents", "1", "--linux-distribution", "debian-12", artifact];
  const { seconds, peakMegabytes } = await time(
    [executable, "create", "--variant", "oss", ...words],
    cloud.environment,
  );
  const apiCalls = await cloud.requestCounts();
  await Bun.file(answersFile).delete();
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
const largest = { nodes: 1000, addedSeconds: 4, peakMegabytes: 400, callsWithoutPolling: 12 } as const;

/** As rows: the whole time, by the time that the machines need; for the largest cluster, also what is added and used, by its limits. */
export function createRows(measurements: readonly CreateMeasurement[]): readonly Row[] {
  return measurements.flatMap((measurement) => [
    timeRow(measurement),
    ...(measurement.nodes === largest.nodes ? limitRows(measurement) : []),
  ]);
}

function timeRow({ nodes, seconds, addedSeconds, peakMegabytes, callsWithoutPolling }: CreateMeasurement): Row {
  const machines = (bootDelayMs + pendingMs) / 1000;
  return {
    what: `create: ${nodes} nodes, peak ${peakMegabytes.toFixed(0)} MB, ${callsWithoutPolling} API calls without polling`,
    value: `${seconds.toFixed(2)} s (${addedSeconds.toFixed(2)} s added)`,
    reference: `${machines.toFixed(2)} s (scripted delays)`,
    ratio: seconds / machines,
  };
}

function limitRows({ addedSeconds, peakMegabytes, callsWithoutPolling }: CreateMeasurement): readonly Row[] {
  const row = (what: string, value: number, limit: number, unit: string): Row => ({
    what: `create: ${largest.nodes} nodes, ${what}`,
    value: `${Number(value.toFixed(2))}${unit}`,
    reference: `${limit}${unit}`,
    ratio: value / limit,
    limit: 1,
  });
  return [
    row("time added", addedSeconds, largest.addedSeconds, " s"),
    row("peak memory", peakMegabytes, largest.peakMegabytes, " MB"),
    row("API calls without polling", callsWithoutPolling, largest.callsWithoutPolling, ""),
  ];
}
