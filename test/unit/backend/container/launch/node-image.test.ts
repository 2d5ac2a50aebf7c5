import { expect, test } from "bun:test";
import type { Engine } from "../../../../../src/backend/container/engine/engine.ts";
import { engineKinds } from "../../../../../src/backend/container/engine/engine-kinds.ts";
import { obtainNodeImage } from "../../../../../src/backend/container/launch/node-image.ts";
import { ClusterError } from "../../../../../src/errors.ts";
import { silentProgress } from "../../../../../src/system/runtime.ts";
import { failureOf } from "../../../../support/failure-of.ts";

const image = { name: "nodes:1", isPresent: false, containerfile: "FROM debian:12\n" };

/** An engine whose builds print this and fail. */
const failing = (output: string): Engine =>
  ({
    kind: engineKinds.docker,
    ask: async ({ onOutput }: { readonly onOutput?: (chunk: string) => void }) => {
      onOutput?.(output);
      throw new ClusterError("engine-failed", "docker build failed.", { facts: { status: 1 } });
    },
  }) as unknown as Engine;

const failureOfBuild = (output: string) =>
  failureOf(obtainNodeImage(failing(output), image, silentProgress, new AbortController().signal));

test.each([
  [
    "Step 2/3 : RUN apt-get update\nErr:1 http://deb.debian.org\n  Temporary failure resolving 'deb.debian.org'\nE: Some index files failed to download.\n",
    'Cannot build the node image nodes:1: docker build failed (at "RUN apt-get update"): E: Some index files failed to download.',
  ],
  ["", "Cannot build the node image nodes:1: docker build failed: the build's output does not name the cause."],
])("a failed build with the output %j is explained", async (output, message) => {
  const failure = await failureOfBuild(output);
  expect(failure).toMatchObject({ id: "image-not-found", message });
  expect(failure.hint).toContain("`nodeImage`");
});

test("an image that the engine already has is neither built nor pulled", async () => {
  const done = await obtainNodeImage(
    failing(""),
    { ...image, isPresent: true },
    silentProgress,
    new AbortController().signal,
  );
  expect(done).toBeUndefined();
});

test.each([
  [image.containerfile, "Build the node image", ["build", "--force-rm", "--tag=nodes:1", "-"]],
  [undefined, "Pull the node image", ["pull", "nodes:1"]],
])("an image with the recipe %j is obtained in the step %j", async (containerfile, title, words) => {
  const [titles, commands]: [string[], unknown[]] = [[], []];
  const engine = {
    kind: engineKinds.docker,
    ask: async (request: { readonly words: readonly string[] }) => void commands.push(request.words),
  } as unknown as Engine;
  const progress = {
    ...silentProgress,
    start: (...given: Parameters<typeof silentProgress.start>) => {
      titles.push(given[0]);
      return silentProgress.start(...given);
    },
  };
  const { name, isPresent } = image;
  const wanted = containerfile === undefined ? { name, isPresent } : image;
  await obtainNodeImage(engine, wanted, progress, new AbortController().signal);
  expect([titles, commands]).toEqual([[title], [words]]);
});
