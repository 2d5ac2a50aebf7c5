/** What `cluster-vm create` adds to the time that as many QEMUs need which are started by hand with the same words. */
import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Row } from "./measure.ts";
import { environmentOf, rowOf, inSeconds, time } from "./measure.ts";
import { writeSmallArtifact } from "./small-artifact.ts";
import { findLines, lastOf, spoken } from "./spoken.ts";
import { awaitSsh } from "./ssh-banner.ts";

const root = join(import.meta.dir, "..", "..");
const id = `bench-${process.pid}`;
const bannerLimitMs = 1_200_000;
const diskSize = "4g";
const sizes = [
  { nodes: 1, rounds: 5, limit: 1.25 },
  { nodes: 8, rounds: 3, limit: 1.1 },
] as const;
interface Size {
  readonly nodes: number;
  readonly rounds: number;
  readonly limit: number;
}

export async function* measureVms(executable: string): AsyncGenerator<Row> {
  await using bench = await openVmBench(executable);
  for (const size of sizes) yield await measureSize(bench, size);
}

export interface VmBench extends AsyncDisposable {
  readonly executable: string;
  readonly folder: string;
  readonly image: string;
  readonly artifact: string;
  readonly cache?: string;
}

export async function openVmBench(executable: string): Promise<VmBench> {
  const folder = await mkdtemp(join(tmpdir(), "cluster-e2e-bench-"));
  return {
    executable,
    folder,
    image: (await time([join(root, "test/vm-image/build")])).stdout.trim(),
    artifact: await writeSmallArtifact(folder),
    [Symbol.asyncDispose]: async () => rm(folder, { recursive: true, force: true }),
  };
}

async function measureSize(bench: VmBench, { nodes, rounds, limit }: Size): Promise<Row> {
  const [login, byHand]: [number[], number[]] = [[], []];
  for (let round = 0; round < rounds; round += 1) {
    const created = await createVms(bench, { nodes, options: ["--fresh-boot"] });
    login.push(created.login);
    byHand.push(await startByHand(created.machines, bench.image));
  }
  return rowOf({
    what: `vms: ${nodes === 1 ? "a single node" : `${nodes} nodes at once`} until SSH`,
    values: login,
    unit: inSeconds,
    references: byHand,
    by: "the same QEMU by hand",
    limit,
  });
}

export interface Machine {
  /** QEMU's command line, for a machine in `copy` of which the seed is there. */
  readonly argv: readonly string[];
  readonly copy: string;
}

/** Creates a cluster, and removes it after `whileThere`. */
export async function createVms(
  { executable, folder, image, artifact, cache = join(folder, "cache") }: VmBench,
  { nodes, platform = artifact, options = [], megabytes = 768, whileThere }: VmCreation,
): Promise<{
  readonly login: number;
  readonly seconds: number;
  readonly machines: readonly Machine[];
}> {
  const environment = { XDG_STATE_HOME: join(folder, "state"), XDG_CACHE_HOME: cache };
  const machine = [
    "--memory",
    String(megabytes),
    "--cpus",
    "1",
    "--disk-size",
    diskSize,
    "--image",
    image,
  ];
  const counts = ["--agents", String(nodes - 1), "--public-agents", "0"];
  const words = [
    "create",
    "-vv",
    ...(platform === artifact ? ["--variant", "oss"] : []),
    "-c",
    id,
    ...machine,
    ...counts,
    ...options,
    platform,
  ];
  try {
    const lines = await spoken([executable, ...words], environment);
    const commands = findLines(
      lines,
      /^qemu-system-\w+ .{0,5000}hostfwd=.{0,5000} -daemonize$/,
      nodes,
    );
    await whileThere?.(commands);
    return {
      login: lastOf(lines, /: \$ .{0,5000} e2e-first-contact /, nodes),
      seconds: lines.at(-1)?.seconds ?? Number.NaN,
      machines: await Promise.all(
        commands.map(async (line) => copyOf(line, await mkdtemp(join(folder, "copy-")))),
      ),
    };
  } finally {
    await time([executable, "destroy", "-c", id], environment);
  }
}

interface VmCreation {
  readonly nodes: number;
  /** Default: the bench's artifact. */
  readonly platform?: string;
  readonly options?: readonly string[];
  readonly megabytes?: number;
  /** Gets the command line of each QEMU. */
  readonly whileThere?: (commands: readonly string[]) => Promise<void>;
}

/** Each has a network of its own inside, since the cluster's is gone. */
async function copyOf(line: string, copy: string): Promise<Machine> {
  const argv = line
    .split(" ")
    .map((word) => word.replace(/^stream,id=inside,.*/, "hubport,id=inside,hubid=0"));
  const own = argv[argv.indexOf("-pidfile") + 1]?.replace(/\/qemu\.pid$/, "") ?? "";
  await cp(join(own, "seed"), join(copy, "seed"), { recursive: true });
  return { argv: argv.map((word) => word.replaceAll(own, copy)), copy };
}

/** Resolves with the seconds until all have SSH. Their ports are those of the machines before, which are gone. */
export async function startByHand(machines: readonly Machine[], image: string): Promise<number> {
  const started = performance.now();
  const running = machines.map((machine) => startOne(machine, image));
  try {
    await Promise.all(running.map(async ({ isUp }) => isUp));
    return (performance.now() - started) / 1000;
  } finally {
    await Promise.all(running.map(async ({ end }) => end()));
    await Promise.all(
      machines.map(async ({ copy }) => rm(join(copy, "disk.qcow2"), { force: true })),
    );
  }
}

interface RunningMachine {
  readonly isUp: Promise<void>;
  readonly end: () => Promise<void>;
}

function startOne({ argv, copy }: Machine, image: string): RunningMachine {
  const disk = join(copy, "disk.qcow2");
  const port = Number(/hostfwd=tcp:127\.0\.0\.1:(\d+)-:22/.exec(argv.join(" "))?.[1]);
  const words = [
    "qemu-img",
    "create",
    "-q",
    "-f",
    "qcow2",
    "-b",
    image,
    "-F",
    "qcow2",
    disk,
    diskSize.toUpperCase(),
  ];
  const begun = time(words).then(() =>
    Bun.spawn(
      argv.filter((word) => word !== "-daemonize"),
      { cwd: copy, env: environmentOf({}), stdio: ["ignore", "ignore", "inherit"] },
    ),
  );
  return {
    isUp: begun.then(async () => awaitSsh("127.0.0.1", port, bannerLimitMs)),
    end: async () => {
      const machine = await begun;
      machine.kill("SIGKILL");
      await machine.exited;
    },
  };
}
