/** How much sooner a restored cluster runs a job than a new one: of containers, and of virtual machines. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Row } from "./measure.ts";
import { rowOf, inSeconds, time } from "./measure.ts";

const root = join(import.meta.dir, "..", "..");
const id = `bench-${process.pid}`;
const nodes = ["--agents", "1", "--public-agents", "0"];
const job = ["srun", "-N1", "hostname"];
const tryLimitMs = 300_000;

/** Of virtual machines that continue from memory, on a computer that has nothing of them. */
const fileLimit = 0.1;

/** A restore maps memory rather than reading it, so it takes as long with more of it. */
const sameTime = 1.2;

export async function measureContainerSnapshots(executable: string): Promise<Row> {
  const options = ["--node-image", "localhost/cluster-e2e-machine:debian-12"];
  return restoreRow("containers", await measure({ executable, options }), 0.5);
}

export async function* measureVmSnapshots(executable: string): AsyncGenerator<Row> {
  const image = (await time([join(root, "test/vm-image/build")])).stdout.trim();
  const withMemory = async (megabytes: number): Promise<Restored> => {
    const options = [
      "--memory",
      String(megabytes),
      "--cpus",
      "1",
      "--disk-size",
      "4g",
      "--image",
      image,
    ];
    return measure({ executable, options, hasFile: megabytes === 512 });
  };
  const small = await withMemory(512);
  yield restoreRow("vms", small, 0.05);
  yield rowOf({
    what: "vms: from a file until a job has run on a 1+1 cluster",
    values: [small.fromFile ?? Number.NaN],
    unit: inSeconds,
    references: [small.created],
    by: "create --wait",
    limit: fileLimit,
  });
  yield rowOf({
    what: "vms: restore a 1+1 cluster of nodes with 2 GB until a job has run",
    values: [(await withMemory(2048)).restored],
    unit: inSeconds,
    references: [small.restored],
    by: "512 MB",
    limit: sameTime,
  });
}

interface Restored {
  readonly created: number;
  readonly restored: number;
  /** Absent unless it was wanted. */
  readonly fromFile?: number;
}

const restoreRow = (what: string, { created, restored }: Restored, limit: number): Row =>
  rowOf({
    what: `${what}: restore a 1+1 cluster until a job has run`,
    values: [restored],
    unit: inSeconds,
    references: [created],
    by: "create --wait",
    limit,
  });

interface Bench {
  readonly executable: string;
  readonly options: readonly string[];
  readonly hasFile?: boolean;
}

async function measure({ executable, options, hasFile = false }: Bench): Promise<Restored> {
  const folder = await mkdtemp(join(tmpdir(), "cluster-e2e-bench-"));
  // As on a computer that has nothing yet, like the one that gets the file: otherwise a template of an earlier run would decide.
  const environment = {
    XDG_STATE_HOME: join(folder, "state"),
    XDG_CACHE_HOME: join(folder, "cache"),
  };
  const run = (...words: readonly string[]) => time([executable, ...words, "-c", id], environment);
  try {
    const artifact = join(folder, "artifact.sh");
    await time([
      join(root, "test/sample-platform/build"),
      "--variant",
      "oss",
      "--output",
      artifact,
    ]);
    const begun = performance.now();
    await run("create", "--variant", "oss", "--wait", ...nodes, ...options, artifact);
    const created = (performance.now() - begun) / 1000;
    await run("snapshot", "create", "installed");
    const began = performance.now();
    await run("snapshot", "restore", "installed");
    await untilJobRuns([executable, "run", "-c", id, ...job], environment);
    const restored = (performance.now() - began) / 1000;
    if (!hasFile) return { created, restored };
    const file = join(folder, "cluster.zst");
    await run("snapshot", "save", "installed", file);
    await run("destroy", "--yes");
    return { created, restored, fromFile: await createFromFile(executable, { folder, file }) };
  } finally {
    await run("destroy", "--yes").catch(() => {});
    await rm(folder, { recursive: true, force: true });
  }
}

/** With folders of its own for state and cache, as on another computer. */
async function createFromFile(
  executable: string,
  { folder, file }: { readonly folder: string; readonly file: string },
): Promise<number> {
  const second = {
    XDG_STATE_HOME: join(folder, "second"),
    XDG_CACHE_HOME: join(folder, "second-cache"),
  };
  const began = performance.now();
  await time([executable, "create", "--from", file, "-c", id], second);
  try {
    await untilJobRuns([executable, "run", "-c", id, ...job], second);
    return (performance.now() - began) / 1000;
  } finally {
    await time([executable, "destroy", "--yes", "-c", id], second);
  }
}

/** Containers boot their services first. */
async function untilJobRuns(
  argv: readonly string[],
  environment: Readonly<Record<string, string>>,
): Promise<void> {
  const deadline = performance.now() + tryLimitMs;
  for (;;) {
    try {
      await time(["timeout", "60", ...argv], environment);
      return;
    } catch (error) {
      if (performance.now() > deadline) throw error;
      await Bun.sleep(200);
    }
  }
}
