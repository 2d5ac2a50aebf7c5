/** `sync` of a checkout to three masters, against rsync over ssh to the same three side by side: first time, and unchanged. */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { startBenchCloud } from "./local-cloud.ts";
import type { BenchCloud } from "./local-cloud.ts";
import type { Row } from "./measure.ts";
import { interleaved, rowOf, inSeconds, time } from "./measure.ts";

const root = join(import.meta.dir, "..", "..");
const masters = ["master_0", "master_1", "master_2"];
const files = 2000;
const fileBytes = 10_000;
const rounds = 5;
const limits = { "first time": 1.1, unchanged: 1 } as const;

export async function measureSync(executable: string): Promise<readonly Row[]> {
  if (Bun.which("rsync") === null)
    throw new Error("the sync benchmark needs rsync: apt-get install rsync");
  await using cloud = await startBenchCloud("container", []);
  const config = await startCluster(executable, cloud);
  const checkout = join(cloud.folder, "checkout");
  const tests = join(checkout, "packages", "integration-test", "extra");
  const [first, unchanged] = [emptyTimes(), emptyTimes()];
  for (let round = 0; round < rounds; round += 1) {
    await writeCheckout(tests, round);
    for (const kind of [first, unchanged]) {
      kind.sync.push((await time([executable, "sync", checkout], cloud.environment)).seconds);
      kind.rsync.push(await rsyncToAll(config, `${tests}/`));
    }
  }
  const [list = []] = await interleaved([[executable, "list"]], rounds, cloud.environment);
  return [row("first time", first, list), row("unchanged", unchanged, list)];
}

interface Times {
  readonly sync: number[];
  readonly rsync: number[];
}

const emptyTimes = (): Times => ({ sync: [], rsync: [] });

const row = (what: keyof typeof limits, { sync, rsync }: Times, list: readonly number[]): Row =>
  rowOf({
    what: `sync: ${files} files, ${(files * fileBytes) / 1e6} MB, 3 masters, ${what}`,
    values: sync,
    unit: inSeconds,
    references: rsync,
    by: "rsync -a",
    less: { values: list, by: "list" },
    limit: limits[what],
  });

/** Resolves with the path of an OpenSSH configuration for the nodes. */
async function startCluster(executable: string, cloud: BenchCloud): Promise<string> {
  const artifact = join(cloud.folder, "artifact.sh");
  await time([join(root, "test/sample-platform/build"), "--variant", "oss", "--output", artifact]);
  const counts = "--masters 3 --agents 0 --public-agents 0".split(" ");
  const words = ["--variant", "oss", "--linux-distribution", "debian-12", ...counts, artifact];
  await time([executable, "create", ...words], cloud.environment);
  await time([executable, "wait"], cloud.environment);
  const config = join(cloud.folder, "cluster.ssh");
  await Bun.write(
    config,
    (await time([executable, "inspect", "--output", "ssh-config"], cloud.environment)).stdout,
  );
  return config;
}

/** Other contents in each round, so that everything has to be sent anew. */
async function writeCheckout(folder: string, round: number): Promise<void> {
  await mkdir(folder, { recursive: true });
  for (let index = 0; index < files; index += 1) {
    const path = join(folder, `part_${index % 40}`, `test_${index}.py`);
    await Bun.write(path, `# ${round} ${index}\n`.padEnd(fileBytes, `${index * 7919 + round}\n`));
  }
}

async function rsyncToAll(config: string, source: string): Promise<number> {
  const options = ["-a", "--delete", "-e", `ssh -F ${config}`, "--rsync-path", "sudo rsync"];
  const started = performance.now();
  await Promise.all(
    masters.map((master) =>
      time(["rsync", ...options, source, `${master}:/opt/cluster/bench-tests/`]),
    ),
  );
  return (performance.now() - started) / 1000;
}
