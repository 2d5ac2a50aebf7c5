/** What the layout `dcos`, whose nodes need Docker, adds to `cluster-container create` with a node image that is there already. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Row } from "./measure.ts";
import { rowOf, inSeconds, time } from "./measure.ts";
import { lastOf, spoken } from "./spoken.ts";

const root = join(import.meta.dir, "..", "..");
const id = `bench-${process.pid}`;
const base = "docker.io/library/debian:12";
const rounds = 9;
const limit = 1.3;
const layouts = ["cluster", "dcos"] as const;

interface Bench {
  readonly executable: string;
  readonly folder: string;
  readonly artifacts: Readonly<Record<(typeof layouts)[number], string>>;
}

export async function measureDcos(executable: string): Promise<Row> {
  const folder = await mkdtemp(join(tmpdir(), "cluster-e2e-bench-"));
  try {
    await provideBase();
    // Docker inside a container works on any machine with these.
    const settings = { "storage-driver": "vfs", bridge: "none", iptables: false, ip6tables: false };
    await Bun.write(join(folder, "daemon.json"), JSON.stringify(settings));
    const bench = { executable, folder, artifacts: await buildArtifacts(folder) };
    const seconds = { cluster: [] as number[], dcos: [] as number[] };
    // The first round builds the images.
    for (const layout of layouts) await create(bench, layout);
    for (let round = 0; round < rounds; round += 1) {
      for (const layout of layouts) seconds[layout].push(await create(bench, layout));
    }
    return rowOf({
      what: "containers: 1+1+1 with layout dcos, until the installation started",
      values: seconds.dcos,
      unit: inSeconds,
      references: seconds.cluster,
      by: "layout cluster",
      limit,
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Where no registry is reached, an image like the published one stands in for it. */
export async function provideBase(): Promise<void> {
  const present = (await time(["docker", "images", "--quiet", base])).stdout.trim();
  if (present !== "") return;
  const { stdout } = await time([join(root, "test/machine-image/published-debian"), "12"]);
  await time(["docker", "tag", stdout.trim(), base]);
}

async function buildArtifacts(folder: string): Promise<Bench["artifacts"]> {
  const [cluster, dcos] = [join(folder, "cluster.sh"), join(folder, "dcos.sh")];
  await time([join(root, "test/sample-platform/build"), "--variant", "oss", "--output", cluster]);
  const release = ["--variant", "oss", "--release", "2.1.2"];
  await time([join(root, "test/dcos-platform/build"), ...release, "--output", dcos]);
  return { cluster, dcos };
}

async function create(
  { executable, folder, artifacts }: Bench,
  layout: keyof Bench["artifacts"],
): Promise<number> {
  const environment = { XDG_STATE_HOME: join(folder, "state") };
  const volume = `${join(folder, "daemon.json")}:/etc/docker/daemon.json:ro`;
  const words = [
    "--variant",
    "oss",
    "--linux-distribution",
    "debian-12",
    "--custom-volume",
    volume,
    "-c",
    id,
  ];
  try {
    const lines = await spoken([executable, "create", ...words, artifacts[layout]], environment);
    return lastOf(lines, /^The installation has started/, 1);
  } finally {
    await time([executable, "destroy", "-c", id], environment);
  }
}
