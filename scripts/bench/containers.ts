/** What `cluster-container create` adds to the time that Docker needs to run as many systems until their SSH servers are up. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Row } from "./measure.ts";
import { rowOf, inSeconds, time } from "./measure.ts";
import { writeSmallArtifact } from "./small-artifact.ts";
import { findLines, lastOf, spoken } from "./spoken.ts";
import { awaitSsh } from "./ssh-banner.ts";

const image = "localhost/cluster-e2e-machine:debian-12";
const bannerLimitMs = 300_000;
const sizes = [
  { agents: 1, publicAgents: 1, rounds: 9, limits: { login: 1.2, started: 1.6, loginByHand: 1.2 } },
  { agents: 20, publicAgents: 5, rounds: 5, limits: { login: 1.1, loginByHand: 1.1 } },
] as const;
const bare = { nodes: 5, rounds: 5, limit: 1.1 } as const;

interface Bench {
  readonly executable: string;
  readonly folder: string;
  readonly artifact: string;
  readonly environment: Readonly<Record<string, string>>;
  /** Of the reference: the same, with host keys. */
  readonly ownImage: string;
}

export async function* measureContainers(executable: string): AsyncGenerator<Row> {
  const folder = await mkdtemp(join(tmpdir(), "cluster-e2e-bench-"));
  const ownImage = `localhost/cluster-e2e-bench:${process.pid}`;
  try {
    await buildOwnImage(folder, ownImage);
    const environment = { XDG_STATE_HOME: join(folder, "state") };
    const bench = {
      executable,
      folder,
      artifact: await writeSmallArtifact(folder),
      environment,
      ownImage,
    };
    yield await measureBare(bench);
    for (const size of sizes) yield* await measureSize(bench, size);
  } finally {
    await time(["docker", "image", "rm", "--force", ownImage]).catch(() => {});
    await rm(folder, { recursive: true, force: true });
  }
}

/** cloud-init would take its time to make them; `create` gives nodes theirs, and switches it off. */
async function buildOwnImage(folder: string, name: string): Promise<void> {
  const recipe = `FROM ${image}\nRUN ssh-keygen -A && touch /etc/cloud/cloud-init.disabled\n`;
  await Bun.write(join(folder, "image", "Dockerfile"), recipe);
  await time([
    "docker",
    "build",
    "--quiet",
    "--network=none",
    "--tag",
    name,
    join(folder, "image"),
  ]);
}

async function measureBare(bench: Bench): Promise<Row> {
  const { nodes, rounds, limit } = bare;
  const [whole, plain]: [number[], number[]] = [[], []];
  for (let round = 0; round < rounds; round += 1) {
    const counts = ["--agents", `${nodes - 1}`, "--public-agents", "0"];
    const created = await create({ ...bench, artifact: "example:bare" }, nodes, counts);
    whole.push(created.started);
    plain.push(await runPlainly(bench, created.words, nodes));
  }
  return rowOf({
    what: `containers: example:bare with ${nodes} nodes, to the end of create`,
    values: whole,
    unit: inSeconds,
    references: plain,
    by: "docker run, until sshd is up",
    limit,
  });
}

interface Size {
  readonly agents: number;
  readonly publicAgents: number;
  readonly rounds: number;
  readonly limits: {
    readonly login: number;
    readonly started?: number;
    readonly loginByHand: number;
  };
}

async function measureSize(
  bench: Bench,
  { agents, publicAgents, rounds, limits }: Size,
): Promise<readonly Row[]> {
  const nodes = 1 + agents + publicAgents;
  const [login, started, plain, byHand]: [number[], number[], number[], number[]] = [
    [],
    [],
    [],
    [],
  ];
  for (let round = 0; round < rounds; round += 1) {
    const created = await create(bench, nodes, [
      "--agents",
      `${agents}`,
      "--public-agents",
      `${publicAgents}`,
    ]);
    login.push(created.login);
    started.push(created.started);
    plain.push(await runPlainly(bench, created.words, nodes));
    byHand.push(await createByHand(bench, created.words, nodes));
  }
  const what = `containers: 1+${agents}+${publicAgents}`;
  const row = (
    name: string,
    values: readonly number[],
    { references, way, limit }: Reference,
  ): Row =>
    rowOf({
      what: `${what}, ${name}`,
      values,
      unit: inSeconds,
      references,
      by: `${way}, until sshd is up`,
      limit,
    });
  const [run, hand] = ["docker run", "docker network create, create, cp, start"];
  return [
    row("until SSH to all", login, { references: plain, way: run, limit: limits.login }),
    row("until the installation started", started, {
      references: plain,
      way: run,
      limit: limits.started,
    }),
    row("until SSH to all, the same by hand", login, {
      references: byHand,
      way: hand,
      limit: limits.loginByHand,
    }),
  ];
}

interface Reference {
  readonly references: readonly number[];
  readonly way: string;
  readonly limit: number | undefined;
}

async function create(bench: Bench, nodes: number, counts: readonly string[]) {
  const { executable, artifact, environment } = bench;
  const id = `bench-${process.pid}`;
  const words = [
    "create",
    "-vv",
    ...(artifact.startsWith("example:") ? [] : ["--variant", "oss"]),
    "--node-image",
    image,
    "-c",
    id,
    ...counts,
    artifact,
  ];
  try {
    const lines = await spoken([executable, ...words], environment);
    const [dockerCreate = ""] = findLines(lines, /^docker create /, 1);
    return {
      login: lastOf(lines, /: Boot: done/, nodes),
      started: lastOf(lines, /^The installation has started/, 1),
      words: runWords(dockerCreate),
    };
  } finally {
    await time([executable, "destroy", "-c", id], environment);
  }
}

/**
 * Of `docker create`, but for what makes it a part of a cluster. By hand, the image's own command starts systemd. The
 * value of one option consists of three words.
 */
export const runWords = (line: string): readonly string[] =>
  (line.match(/(?<= )--(?:device-cgroup-rule=\S+ \S+ |)\S+/g) ?? []).filter(
    (word) => !/^--(?:name|label|hostname|network|network-alias|ip|entrypoint)=/.test(word),
  );

/** All at once, as quickly as Docker can. */
const runPlainly = async (bench: Bench, words: readonly string[], nodes: number): Promise<number> =>
  startAll(nodes, async (name) => {
    await time(["docker", "run", "--detach", `--name=${name}`, ...words, bench.ownImage]);
  });

/** With what every cluster needs besides: a network of its own, in which the nodes have names, and files that a node has before it starts. */
async function createByHand(
  bench: Bench,
  words: readonly string[],
  nodes: number,
): Promise<number> {
  const network = nameOfRound();
  const file = join(bench.folder, "node.tar");
  await time(["tar", "-C", bench.folder, "-cf", file, "image"]);
  const started = performance.now();
  try {
    await time(["docker", "network", "create", network]);
    const networkSeconds = (performance.now() - started) / 1000;
    const own = [`--network=${network}`, ...words, bench.ownImage];
    return (
      networkSeconds +
      (await startAll(nodes, async (name) => {
        await time(["docker", "create", `--name=${name}`, `--network-alias=${name}`, ...own]);
        await time(["sh", "-c", 'docker cp - "$1:/root" <"$0"', file, name]);
        await time(["docker", "start", name]);
      }))
    );
  } finally {
    await time(["docker", "network", "rm", network]).catch(() => {});
  }
}

/** New for each round: what an earlier one could not remove must not end this one. */
const nameOfRound = (): string => `cluster-e2e-bench-${crypto.randomUUID().slice(0, 8)}`;

/** Seconds until the SSH servers of all containers are up. */
async function startAll(nodes: number, start: (name: string) => Promise<void>): Promise<number> {
  const round = nameOfRound();
  const names = Array.from({ length: nodes }, (_, index) => `${round}-${index}`);
  const format = "--format={{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}";
  const started = performance.now();
  try {
    await Promise.all(
      names.map(async (name) => {
        await start(name);
        const { stdout } = await time(["docker", "container", "inspect", format, name]);
        await awaitSsh(stdout.trim(), 22, bannerLimitMs);
      }),
    );
    return (performance.now() - started) / 1000;
  } finally {
    await time(["docker", "rm", "--force", "--volumes", ...names]).catch(() => {});
  }
}
