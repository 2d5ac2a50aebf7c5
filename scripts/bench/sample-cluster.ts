/** A cluster of container machines with the sample platform, and the connections that `run` keeps to it. */
import { readdir } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { BenchCloud } from "./local-cloud.ts";
import { time } from "./measure.ts";

const root = join(import.meta.dir, "..", "..");

/** Creates a cluster with one master, and waits until its platform is ready. */
export async function createSampleCluster(
  executable: string,
  cloud: BenchCloud,
  { agents }: { readonly agents: number },
): Promise<void> {
  const artifact = join(cloud.folder, "artifact.sh");
  await time([join(root, "test/sample-platform/build"), "--variant", "oss", "--output", artifact]);
  const size = ["--agents", String(agents), "--public-agents", "0"];
  const words = ["--variant", "oss", "--linux-distribution", "debian-12", ...size];
  await time([executable, "create", "--wait", ...words, artifact], cloud.environment);
}

/** Returns the path of a configuration for ssh. */
export async function writeSshConfig(executable: string, cloud: BenchCloud): Promise<string> {
  const path = join(cloud.folder, "cluster.ssh");
  await Bun.write(
    path,
    (await time([executable, "inspect", "--output", "ssh-config"], cloud.environment)).stdout,
  );
  return path;
}

/** Resolves once logins to this many nodes are kept: the first command leaves them, which takes a moment. */
export async function mastersOpen(cloud: BenchCloud, count: number): Promise<void> {
  for (const deadline = Date.now() + 60_000; ; await Bun.sleep(20)) {
    const found = await sockets(cloud);
    const answers =
      found.length < count
        ? []
        : await Promise.all(found.map(async (socket) => tell(socket, "check")));
    if (answers.filter((status) => status === 0).length >= count) return;
    if (Date.now() > deadline) throw new Error("run keeps no connection");
  }
}

export async function closeMasters(cloud: Pick<BenchCloud, "folder">): Promise<void> {
  await Promise.all((await sockets(cloud)).map((socket) => tell(socket, "exit")));
}

async function sockets(cloud: Pick<BenchCloud, "folder">): Promise<readonly string[]> {
  const state = join(cloud.folder, "state");
  const paths = await readdir(state, { recursive: true });
  return paths
    .filter((path) => basename(path).startsWith("master-"))
    .map((path) => join(state, path));
}

async function tell(socket: string, word: "check" | "exit"): Promise<number> {
  const argv = [
    "ssh",
    "-F",
    "/dev/null",
    "-o",
    `ControlPath=./${basename(socket)}`,
    "-O",
    word,
    "master",
  ];
  return Bun.spawn(argv, { cwd: dirname(socket), stdio: ["ignore", "ignore", "ignore"] }).exited;
}
