/**
 * Clusters of containers as files, for other computers: a second Docker in a network of its own stands for one, whose user is another, and a Podman for a
 * third.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFile, readdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { buildArtifact } from "./support/artifacts.ts";
import { podmanLack } from "./support/container-engine.ts";
import { interruptAt } from "./support/ended-early.ts";
import type { Ended } from "./support/executable.ts";
import {
  type SecondComputer,
  computerLack,
  startSecondComputer,
} from "./support/second-computer.ts";
import {
  type TestContainers,
  docker,
  nodeImage,
  startTestContainers,
} from "./support/test-containers.ts";

const state: { first?: TestContainers; second?: SecondComputer } = {};
const first = (): TestContainers => state.first!;
const second = (): SecondComputer => state.second!;
const source = (): string => first().id("source");
const file = (): string => join(first().folder, "cluster.zst");
const srun = ["srun", "-N1", "hostname"];
const notes = "cat /root/note /var/lib/docker/deep/note";

type Run = (words: readonly string[]) => Promise<Ended>;
const succeed = async (run: Run, words: readonly string[]): Promise<Ended> => {
  const ended = await run(words);
  expect({ status: ended.status }, ended.stderr).toEqual({ status: 0 });
  return ended;
};
const onFirst: Run = async (words) => first().run(words);
const onSecond: Run = async (words) => second().run(words);

/** Creates a cluster from a file, and looks whether the platform runs jobs and the data is there. */
async function createFrom(run: Run, path: string, id: string): Promise<void> {
  const created = await succeed(run, [
    "create",
    "--from",
    path,
    "-c",
    id,
    "--wait",
    "--timeout",
    "3m",
  ]);
  expect(created.stdout).toBe(`${id}\n`);
  expect(await run(["run", "-c", id, ...srun])).toMatchObject({ status: 0, stdout: "agent-0\n" });
  const read = await run(["run", "-c", id, "--no-test-env", "--node", "agent_0", notes]);
  expect(read.stdout).toBe("saved\nsaved\n");
}

/** Everything that the second Docker has, besides its own networks. */
async function things(): Promise<readonly string[]> {
  const kinds = [
    "ps --all --quiet",
    "images --all --quiet",
    "volume ls --quiet",
    "network ls --quiet --filter=type=custom",
  ];
  const found = await Promise.all(kinds.map(async (words) => second().docker(words.split(" "))));
  return found.flatMap((text) => text.split("\n")).filter((line) => line !== "");
}

beforeAll(async () => {
  if (computerLack !== undefined) return;
  [state.first, state.second] = await Promise.all([startTestContainers(), startSecondComputer()]);
  const artifact = await buildArtifact("oss", first().folder);
  const options = [
    "--public-agents",
    "0",
    "--memory",
    "1g",
    "--node-image",
    nodeImage,
    "--wait",
    artifact,
  ];
  await succeed(onFirst, ["create", "--variant", "oss", "-c", source(), ...options]);
  const write =
    "echo saved >/root/note; mkdir -p /var/lib/docker/deep; echo saved >/var/lib/docker/deep/note";
  await succeed(onFirst, ["run", "-c", source(), "--no-test-env", "--node", "agent_0", write]);
  await succeed(onFirst, ["snapshot", "create", "installed", "-c", source()]);
});

afterAll(async () => {
  for (const name of ["source", "back"])
    await state.first?.run(["destroy", "--yes", "-c", first().id(name)]);
  await state.second?.[Symbol.asyncDispose]();
  await state.first?.[Symbol.asyncDispose]();
});

describe.skipIf(computerLack !== undefined)(`between computers (${computerLack ?? "here"})`, () => {
  test("a snapshot becomes one file, which only its user can read, and which zstd reads", async () => {
    const saved = await succeed(onFirst, ["snapshot", "save", "installed", file(), "-c", source()]);
    expect(saved.stdout).toBe(`${file()}\n`);
    expect(saved.stderr).toContain("holds the secrets of the cluster");
    expect((await stat(file())).mode & 0o777).toBe(0o600);
    expect(await Bun.$`zstd --test ${file()}`.quiet().nothrow()).toMatchObject({ exitCode: 0 });
    const again = await onFirst(["snapshot", "save", "installed", file(), "-c", source()]);
    expect(again).toMatchObject({ status: 2, stderr: expect.stringContaining("pass --replace") });
    const names = await readdir(first().folder, { recursive: true });
    expect(names.filter((name) => name.endsWith("/draft"))).toEqual([]);
  });

  test("a file without its image is small, and works only where the image is", async () => {
    const path = join(first().folder, "upper.zst");
    await succeed(onFirst, [
      "snapshot",
      "save",
      "installed",
      path,
      "-c",
      source(),
      "--without-base",
    ]);
    expect((await stat(path)).size).toBeLessThan((await stat(file())).size / 3);
    const refused = await second().run([
      "create",
      "--from",
      await second().receive(path, "upper.zst"),
      "-c",
      "upper",
    ]);
    expect(refused.stderr).toContain("[image-not-found]");
    expect(refused.stderr).toContain(nodeImage);
    expect(await things()).toEqual([]);
    const words = ["once", "--from", path, "--no-test-env", "--node", "agent_0", "--", notes];
    expect(await onFirst(words)).toMatchObject({ status: 0, stdout: "saved\nsaved\n" });
  });

  // Shows R121.
  test("a damaged file and an interrupt leave nothing in a real engine", async () => {
    const bytes = await readFile(file());
    bytes[bytes.length - 1000]! ^= 0x55;
    const path = await second().receive(file(), "cluster.zst");
    const damaged = join(second().home, "damaged.zst");
    await writeFile(damaged, bytes, { mode: 0o644 });
    const refused = await second().run(["create", "--from", damaged, "-c", "damaged"]);
    expect(refused.stderr).toContain("[snapshot-unusable]");
    await interruptAt(second(), "Load the file …", ["create", "--from", path, "-c", "cut"]);
    expect(await things()).toEqual([]);
  });

  // Shows R121.
  test("on a second computer, another user makes a cluster of it, in which jobs run, and which can be saved again", async () => {
    const path = join(second().home, "cluster.zst");
    await createFrom(onSecond, path, "nightly");
    const keysIn = async (folder: string): Promise<readonly string[]> => {
      const names = (await readdir(folder, { recursive: true })).filter((name) =>
        name.endsWith("known_hosts"),
      );
      const texts = await Promise.all(
        names.map(async (name) => readFile(join(folder, name), "utf8")),
      );
      return [...new Set(texts.join("\n").match(/ssh-ed25519 \S+/g))];
    };
    const keys = [...(await keysIn(second().home)), ...(await keysIn(first().stateFolder))];
    expect(keys).toHaveLength(4);
    expect(new Set(keys).size).toBe(4);
    const memory = await second().docker(["ps", "--quiet", "--no-trunc", "--latest"]);
    expect(await second().docker(["inspect", "--format={{.HostConfig.Memory}}", memory])).toBe(
      "1073741824",
    );
    expect(await second().docker(["images", "--format={{.Repository}}"])).not.toContain(
      "cluster-e2e",
    );
    await succeed(onSecond, ["snapshot", "create", "again", "-c", "nightly"]);
    await succeed(onSecond, ["snapshot", "restore", "again", "-c", "nightly"]);
  });

  test("beside it, once saves a cluster in which its command failed; the last cluster takes all images with it", async () => {
    const failed = join(second().home, "failed.zst");
    const words = [
      "once",
      "--from",
      join(second().home, "cluster.zst"),
      "--no-test-env",
      "--save-on-failure",
      failed,
    ];
    const ran = await second().run([...words, "--", "exit 7"]);
    expect({ status: ran.status }, ran.stderr).toEqual({ status: 7 });
    expect(ran.stderr).toContain(
      "Bring the cluster back as it was: cluster-container create --from",
    );
    expect((await stat(failed)).size).toBeGreaterThan(1e7);
    await succeed(onSecond, ["destroy", "--yes", "-c", "nightly"]);
    expect(await things()).toEqual([]);
  });

  test.skipIf(podmanLack !== undefined)(
    `Podman makes a cluster of Docker's file, and Docker of Podman's (${podmanLack ?? "here"})`,
    async () => {
      await using podman = await startTestContainers("podman", "");
      const onPodman: Run = async (words) => podman.run(words);
      const [there, back] = [podman.id("there"), first().id("back")];
      const path = join(podman.folder, "podman.zst");
      await createFrom(onPodman, file(), there);
      // Slurm saves its jobs only every few seconds: in an older copy of its state, the job that has just run would run forever.
      await succeed(onPodman, ["run", "-c", there, "--no-test-env", "systemctl restart slurmctld"]);
      await succeed(onPodman, ["snapshot", "create", "again", "-c", there]);
      await succeed(onPodman, ["snapshot", "save", "again", path, "-c", there]);
      await succeed(onPodman, ["destroy", "--yes", "-c", there]);
      for (const words of ["images --all --quiet", "volume ls --quiet"])
        expect(await podman.engine.run(words.split(" "))).toBe("");
      await createFrom(onFirst, path, back);
      await succeed(onFirst, ["destroy", "--yes", "-c", back]);
      const filter = `--filter=label=cluster-e2e.cluster-id=${back}`;
      expect(await docker(["images", "--all", "--quiet", filter])).toBe("");
    },
  );
});
