/** What it takes to save a cluster of containers as a file, how large that is, and how soon another computer runs jobs on it. */
import { chmod, cp, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type SecondComputer,
  startSecondComputer,
} from "../../test/e2e/support/second-computer.ts";
import { provideBase } from "./dcos.ts";
import type { Row } from "./measure.ts";
import { inMegabytes, inSeconds, rowOf, time } from "./measure.ts";

const root = join(import.meta.dir, "..", "..");
const id = `bench-${process.pid}`;
const rounds = 3;
const limits = { save: 1.3, size: 1.1, create: 0.3 } as const;
/** A job that comes before its node has registered would wait for the next round of Slurm's scheduler, up to 3 s. So it is refused, and tried again. */
const job = ["srun", "--immediate", "-N1", "hostname"];
const jobLimitMs = 120_000;

interface Bench {
  readonly folder: string;
  readonly run: (...words: readonly string[]) => Promise<unknown>;
  /** The nodes' images. */
  readonly images: readonly string[];
  /** The image that they were made of. */
  readonly base: string;
}

/** Slurm on a master and an agent. */
export async function measureContainerFiles(executable: string): Promise<readonly Row[]> {
  const folder = await mkdtemp(join(tmpdir(), "cluster-e2e-bench-"));
  const environment = { XDG_STATE_HOME: join(folder, "state") };
  const run = async (...words: readonly string[]) =>
    time([executable, ...words, "-c", id], environment);
  const made = { base: "" };
  try {
    await provideBase();
    const platform = await newPlatform(folder);
    const create = [
      "create",
      "--wait",
      "--linux-distribution",
      "debian-12",
      "--public-agents",
      "0",
      platform,
    ];
    const before = await imageNames("localhost/cluster-e2e-node");
    const PATH = await pathWithoutCache(folder);
    const first = (await time([executable, ...create, "-c", id], { ...environment, PATH })).seconds;
    made.base =
      (await imageNames("localhost/cluster-e2e-node")).find((name) => !before.includes(name)) ?? "";
    await run("destroy", "--yes");
    const again = (await run(...create)).seconds;
    await run("snapshot", "create", "installed");
    const images = (await imageNames("localhost/cluster-e2e-snapshot")).filter((name) =>
      name.includes("-installed-"),
    );
    const bench = { folder, run, images, base: made.base };
    return [
      await saveRow(bench),
      await sizeRow(bench),
      ...(await createRows(bench, { first, again })),
    ];
  } finally {
    await run("destroy", "--yes").catch(() => {});
    if (made.base !== "") await time(["docker", "image", "rm", made.base]).catch(() => {});
    await rm(folder, { recursive: true, force: true });
  }
}

/** The example with another package list, so that no node image of it exists. */
async function newPlatform(folder: string): Promise<string> {
  const platform = join(folder, "slurm");
  await cp(join(root, "src/platform/examples/slurm"), platform, { recursive: true });
  const description = join(platform, "platform.yaml");
  const text = await readFile(description, "utf8");
  await writeFile(description, text.replace("apt: [", "apt: [tree, "));
  return platform;
}

/** A PATH whose `docker` builds each image from its base, as on a computer that has never built one. */
async function pathWithoutCache(folder: string): Promise<string> {
  const real = Bun.which("docker") ?? "docker";
  const script = `#!/bin/sh\n[ "$1" != build ] || { shift; exec ${real} build --no-cache "$@"; }\nexec ${real} "$@"\n`;
  await Bun.write(join(folder, "bin", "docker"), script);
  await chmod(join(folder, "bin", "docker"), 0o755);
  return `${join(folder, "bin")}:${process.env["PATH"]}`;
}

const lines = (text: string): readonly string[] => text.split("\n").filter((line) => line !== "");

const imageNames = async (repository: string): Promise<readonly string[]> =>
  lines((await time(["docker", "images", "--format={{.Repository}}:{{.Tag}}", repository])).stdout);

const shell = async (script: string): Promise<number> =>
  (await time(["bash", "-o", "pipefail", "-ec", script])).seconds;

async function saveRow({ folder, run, images }: Bench): Promise<Row> {
  const [own, byHand]: [number[], number[]] = [[], []];
  const file = join(folder, "cluster.zst");
  for (let round = 0; round < rounds; round += 1) {
    byHand.push(
      await shell(`docker save ${images.join(" ")} | zstd --quiet --force -o ${folder}/docker.zst`),
    );
    const began = performance.now();
    await run("snapshot", "save", "installed", file, "--replace");
    own.push((performance.now() - began) / 1000);
  }
  return rowOf({
    what: "containers: save a 1+1 cluster as a file",
    values: own,
    unit: inSeconds,
    references: byHand,
    by: "docker save | zstd",
    limit: limits.save,
  });
}

/** Compares the layers above the base. */
async function sizeRow({ folder, run, images, base }: Bench): Promise<Row> {
  const file = join(folder, "upper.zst");
  await run("snapshot", "save", "installed", file, "--without-base");
  const inspected = await time([
    "docker",
    "image",
    "inspect",
    "--format={{len .RootFS.Layers}}",
    base,
  ]);
  const below = Number(inspected.stdout);
  const saved = join(folder, "saved");
  await shell(`mkdir ${saved}; docker save ${images.join(" ")} | tar -x -C ${saved}`);
  const list = (await Bun.file(join(saved, "manifest.json")).json()) as readonly {
    readonly Layers: readonly string[];
  }[];
  const layers = new Set(list.flatMap(({ Layers }) => Layers.slice(below)));
  await shell(`cd ${saved}; cat ${[...layers].join(" ")} | zstd --quiet -o ${folder}/changes.zst`);
  const [own, byHand] = await Promise.all(
    [file, join(folder, "changes.zst")].map(async (path) => (await stat(path)).size),
  );
  return rowOf({
    what: "containers: size of the file without the image",
    values: [(own ?? Number.NaN) / 1e6],
    unit: inMegabytes,
    references: [(byHand ?? Number.NaN) / 1e6],
    by: "the same layers of docker save | zstd",
    limit: limits.size,
  });
}

async function createRows(
  { folder }: Bench,
  { first, again }: { readonly first: number; readonly again: number },
): Promise<readonly Row[]> {
  await using computer = await startSecondComputer();
  const file = await computer.receive(join(folder, "cluster.zst"), "cluster.zst");
  const values: number[] = [];
  for (let round = 0; round < rounds; round += 1) values.push(await createFrom(computer, file));
  const row = { values, unit: inSeconds };
  const what = "containers: from a file on a new computer until a job has run";
  return [
    rowOf({
      ...row,
      what,
      references: [first],
      by: "the first create --wait, which builds the node image",
      limit: limits.create,
    }),
    rowOf({ ...row, what, references: [again], by: "create --wait with the node image there" }),
  ];
}

async function createFrom({ run }: SecondComputer, file: string): Promise<number> {
  const began = performance.now();
  const created = await run(["create", "--from", file, "-c", id]);
  if (created.status !== 0) throw new Error(created.stderr);
  while ((await run(["run", "-c", id, ...job])).status !== 0)
    if (performance.now() - began > jobLimitMs)
      throw new Error("no job has run on the cluster from a file");
  const seconds = (performance.now() - began) / 1000;
  await run(["destroy", "--yes", "-c", id]);
  return seconds;
}
