/** What `cluster-container create --wait` adds to an example that somebody installs by hand on as many containers of the same image. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runWords } from "./containers.ts";
import { provideBase } from "./dcos.ts";
import type { Row } from "./measure.ts";
import { inSeconds, rowOf, time } from "./measure.ts";
import { findLines, lastOf, spoken } from "./spoken.ts";

const root = join(import.meta.dir, "..", "..");
const example = join(root, "src/platform/examples/etcd");
const id = `bench-${process.pid}`;
const indexes = [0, 1, 2] as const;
const rounds = 9;
const limits = { whole: 1.25, waitSeconds: 2 } as const;

interface Bench {
  readonly executable: string;
  readonly environment: Readonly<Record<string, string>>;
}

/** Three masters of the example etcd. */
export async function measureExample(executable: string): Promise<readonly Row[]> {
  const folder = await mkdtemp(join(tmpdir(), "cluster-e2e-bench-"));
  const bench = { executable, environment: { XDG_STATE_HOME: join(folder, "state") } };
  try {
    await provideBase();
    // The first round builds the image.
    await create(bench);
    const created: Created[] = [];
    const byHand: number[] = [];
    for (let round = 0; round < rounds; round += 1) {
      const one = await create(bench);
      created.push(one);
      byHand.push(await createByHand(one.words));
    }
    return [
      rowOf({
        what: "containers: example:etcd with 3 masters, until it is ready",
        values: created.map(({ seconds }) => seconds),
        unit: inSeconds,
        references: byHand,
        by: "docker run, cp, exec ./install, exec ./check",
        limit: limits.whole,
      }),
      rowOf({
        what: "containers: example:etcd, from the last member's start to the end of create --wait",
        values: created.map(({ waitSeconds }) => waitSeconds),
        unit: inSeconds,
        references: [limits.waitSeconds],
        by: "its limit",
        limit: 1,
      }),
    ];
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

interface Created {
  readonly seconds: number;
  /** From the moment at which the last member serves its clients. */
  readonly waitSeconds: number;
  /** The options of `docker create`, then the image. */
  readonly words: readonly string[];
}

async function create({ executable, environment }: Bench): Promise<Created> {
  const words = [
    "create",
    "-vv",
    "--wait",
    "--linux-distribution",
    "debian-12",
    "-c",
    id,
    "example:etcd",
  ];
  try {
    const startedAtMs = Date.now();
    const lines = await spoken([executable, ...words], environment);
    const [dockerCreate = ""] = findLines(lines, /^docker create /, 1);
    const image = dockerCreate
      .split(" ")
      .filter((word) => word.startsWith("localhost/cluster-e2e-node:"));
    const seconds = lastOf(lines, /^Cluster ".*" is ready/, 1);
    const servingAtMs = Math.max(
      ...(await Promise.all((await containersOf(id)).map(servesSinceMs))),
    );
    const waitSeconds = startedAtMs / 1000 + seconds - servingAtMs / 1000;
    return { seconds, waitSeconds, words: [...runWords(dockerCreate), ...image] };
  } finally {
    await time([executable, "destroy", "-c", id], environment);
  }
}

async function containersOf(clusterId: string): Promise<readonly string[]> {
  const filter = `--filter=label=cluster-e2e.cluster-id=${clusterId}`;
  return (await time(["docker", "ps", filter, "--format={{.Names}}"])).stdout.trim().split("\n");
}

/** When a member began to serve clients, by its own log. */
async function servesSinceMs(name: string): Promise<number> {
  const words = [
    "journalctl",
    "--quiet",
    "--unit=etcd",
    "--output=short-unix",
    "--grep=ready to serve client requests",
  ];
  const { stdout } = await time(["docker", "exec", name, ...words]);
  return 1000 * Number(stdout.trim().split("\n").at(-1)?.split(" ")[0]);
}

async function createByHand(words: readonly string[]): Promise<number> {
  // New for each round: what an earlier one could not remove must not end this one.
  const round = crypto.randomUUID().slice(0, 8);
  const names = indexes.map((index) => `cluster-e2e-${id}-${round}-${index}`);
  const started = performance.now();
  try {
    const addresses = await Promise.all(
      names.map(async (name) => {
        await time(["docker", "run", "--detach", `--name=${name}`, ...words]);
        await time(["docker", "cp", example, `${name}:/root/etcd`]);
        const format = "--format={{.NetworkSettings.IPAddress}}";
        return (await time(["docker", "container", "inspect", format, name])).stdout.trim();
      }),
    );
    await Promise.all(names.map((name, index) => installByHand(name, { index, addresses })));
    return (performance.now() - started) / 1000;
  } finally {
    await time(["docker", "rm", "--force", "--volumes", ...names]).catch(() => {});
  }
}

async function installByHand(
  name: string,
  { index, addresses }: { readonly index: number; readonly addresses: readonly string[] },
): Promise<void> {
  const variables = {
    CLUSTER_ID: id,
    CLUSTER_NODE: `master_${index}`,
    CLUSTER_ROLE: "master",
    CLUSTER_INDEX: String(index),
    CLUSTER_PRIVATE_ADDRESS: addresses[index],
    CLUSTER_MASTERS: addresses.join(" "),
  };
  const given = Object.entries(variables).map(([key, value]) => `--env=${key}=${value}`);
  const script = await Bun.file(join(import.meta.dir, "example-by-hand.sh")).text();
  await time(["docker", "exec", ...given, "--workdir=/root/etcd", name, "sh", "-c", script]);
}
