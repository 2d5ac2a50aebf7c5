/**
 * Files with clusters of containers that are damaged, foreign or made by an attacker: each is refused by an error with its id, and the engine has made
 * nothing of it. The engine is scripted.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { OpenOrigin } from "../../../../../src/backend/container/copies/copy-origin.ts";
import { engineKinds } from "../../../../../src/backend/container/engine/engine-kinds.ts";
import { openEngine } from "../../../../../src/backend/container/engine/engine.ts";
import { fileOrigin } from "../../../../../src/backend/container/files/file-origin.ts";
import { type Runtime, systemClock } from "../../../../../src/system/runtime.ts";
import { silentProgress } from "../../../../support/silent-progress.ts";
import { ContainerWorld } from "../../../../faults/worlds/container-world.ts";
import { failureOf } from "../../../../support/failure-of.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";
import { manifestFor, putTogether, sha256 } from "../../../../support/rewrite-cluster-file.ts";
import { goodBase, goodTop, part, fileWith, bytes } from "../../../../support/cluster-file.ts";
import { hostileFiles } from "../../../../support/hostile-cluster-files.ts";

const state: { world?: ContainerWorld } = {};
const world = (): ContainerWorld => state.world!;
const usersImage = "localhost/users:1";
const creation = { clusterId: "copy", creationId: "0123456789abcdef" };

async function open(path: string): Promise<OpenOrigin> {
  const { environment, stateFolder } = world();
  const runtime: Runtime = {
    environment: { ...environment },
    clock: systemClock,
    progress: silentProgress,
  };
  const engine = openEngine(engineKinds.docker, "", runtime);
  const root = join(stateFolder, "docker");
  await mkdir(root, { recursive: true });
  const request = { clusterId: "copy", file: { location: { path, shown: "FILE" } } };
  const origin = await fileOrigin({ ...runtime, signal: neverAborted }, engine, { request, root });
  return origin.open(creation, neverAborted);
}

/** What the engine has, besides the user's image. */
const made = (): readonly string[] => [
  ...world()
    .engine.images.map(({ name }) => name)
    .filter((name) => name !== usersImage),
  ...world().engine.volumes.keys(),
];

beforeAll(async () => {
  state.world = await ContainerWorld.open();
  await world().engine.run(["commit", "x", usersImage], Buffer.alloc(0));
});

afterAll(async () => state.world?.[Symbol.asyncDispose]());

test("a good file becomes images under names of this program, and no others", async () => {
  const path = join(world().folder, "good.zst");
  await writeFile(path, bytes);
  const opened = await open(path);
  const [node] = opened.nodes;
  expect(node).toMatchObject({
    platformAddress: "172.18.0.2/16",
    settings: { customVolumes: [], limits: { memory: "1g" } },
  });
  expect(made()).toEqual([node.image, node.volume!]);
  const image = world().engine.images.find(({ name }) => name === node.image)!;
  expect(image.layers).toEqual([sha256(goodBase), sha256(goodTop)]);
  expect(image.labels["cluster-e2e.creation-id"]).toBe(creation.creationId);
  await opened.release("running");
  expect(made()).toEqual([]);
});

test("a file without its lowest layers takes those of an image that the engine has", async () => {
  const path = join(world().folder, "upper.zst");
  const { layers } = world().engine.images.find(({ name }) => name === usersImage)!;
  const nodes = [
    {
      role: "master",
      index: 0,
      platformAddress: "172.18.0.2/16",
      layers: [...layers, sha256(goodTop)],
      volumes: [],
    },
  ];
  const contents = new Map([[part(sha256(goodTop)), goodTop]]);
  const { manifest } = fileWith({}, { nodes });
  await writeFile(path, putTogether(manifestFor(manifest, contents), contents.values()));
  const opened = await open(path);
  expect(world().engine.images.find(({ name }) => name === opened.nodes[0].image)!.layers).toEqual(
    nodes[0]!.layers,
  );
  await opened.release("failed");
  expect(made()).toEqual([]);
});

test("an engine that has not loaded what is in the file is an error, and nothing is left", async () => {
  const path = join(world().folder, "unloaded.zst");
  await writeFile(path, bytes);
  await using _ = world().strike({
    call: "load",
    when: "before",
    answer: { status: 0, stdout: "", stderr: "", isKilled: false },
  });
  const failure = await failureOf(open(path));
  expect(failure).toMatchObject({
    id: "engine-failed",
    message: expect.stringContaining("has not loaded the image"),
  });
  expect(made()).toEqual([]);
});

// Shows R121.
test.each(hostileFiles)("%s is refused, and nothing is left", async (_, id, message, make) => {
  const path = join(world().folder, "hostile.zst");
  await writeFile(path, make());
  expect(await failureOf(open(path))).toMatchObject({
    id,
    message: expect.stringMatching(message),
  });
  expect(made()).toEqual([]);
});
