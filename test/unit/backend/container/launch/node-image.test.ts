import { readContainerOptions } from "../../../../../src/backend/container/options.ts";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { scratchFolder } from "../../../../support/scratch-folder.ts";
import { expect, test } from "bun:test";
import type { Engine } from "../../../../../src/backend/container/engine/engine.ts";
import { engineKinds } from "../../../../../src/backend/container/engine/engine-kinds.ts";
import {
  findNodeImage,
  obtainNodeImage,
} from "../../../../../src/backend/container/launch/node-image.ts";
import { ClusterError } from "../../../../../src/errors.ts";
import { unmarked } from "../../../../../src/outside-text.ts";
import { silentProgress } from "../../../../support/silent-progress.ts";
import { failureOf } from "../../../../support/failure-of.ts";
import { recordingProgress } from "../../../../support/recording-progress.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";

const own = { name: "nodes:1", isPresent: false };
const image = { ...own, containerfile: "FROM debian:12\n" };

type EngineRequest = Parameters<Engine["ask"]>[0];
const engineWith = (ask: (request: EngineRequest) => Promise<string>): Engine =>
  ({ kind: engineKinds.docker, ask }) as unknown as Engine;

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
  failureOf(
    obtainNodeImage(failing(output), image, { progress: silentProgress, logFile }, neverAborted),
  );

test.each([
  [
    "Step 2/3 : RUN apt-get update\nErr:1 http://deb.debian.org\n  Temporary failure resolving 'deb.debian.org'\nE: Some index files failed to download.\n",
    'Cannot build the node image nodes:1: docker build failed (at "RUN apt-get update"): E: Some index files failed to download.',
    "RUN apt-get update",
  ],
  [
    "",
    "Cannot build the node image nodes:1: docker build failed: the build's output does not name the cause.",
    undefined,
  ],
])("a failed build with the output %j is explained", async (output, message, step) => {
  const failure = await failureOfBuild(output);
  expect(failure).toMatchObject({ id: "image-not-found", message });
  expect(failure.facts?.["step"]).toBe(step);
  expect(failure.hint).toContain("`nodeImage`");
  expect(failure.hint).toEndWith("Pass -vvv to see the whole build.");
});

test("the image is the user's own, or the one of the distribution, whether the engine has it or not", async () => {
  const has = engineWith(async ({ words }) =>
    words.slice(0, 2).join(" ") === "image inspect" && words.at(-1) === "own:1"
      ? "a".repeat(64)
      : "",
  );
  const find = async (distribution: string, nodeImage?: string) => {
    const { options } = readContainerOptions(nodeImage === undefined ? {} : { nodeImage });
    return findNodeImage(has, distribution, { options, imagePreparation: undefined }, neverAborted);
  };
  expect(await find("debian-12", "own:1")).toEqual({ name: "own:1", isPresent: true });
  expect(await find("debian-12")).toEqual({
    name: expect.stringContaining("debian-12-"),
    isPresent: false,
    containerfile: expect.stringContaining("FROM docker.io/library/debian:12"),
  });
  expect((await failureOf(find("beos-5"))).id).toBe("bad-usage");
});

/** Nobody can write there. */
const logFile = "/dev/null/node-image.log";

test("the output of a failed build is kept, and its file is named", async () => {
  await using folder = await scratchFolder();
  const log = join(folder.path, "node-image.log");
  const asked = obtainNodeImage(
    failing("Step 1/1\nno"),
    image,
    { progress: silentProgress, logFile: log },
    neverAborted,
  );
  expect((await failureOf(asked)).hint).toEndWith(`The whole build: ${log}`);
  expect(await readFile(log, "utf8")).toBe("Step 1/1\nno");
});

test("whole lines of a build are in its file while it runs, masked", async () => {
  await using folder = await scratchFolder();
  const log = join(folder.path, "node-image.log");
  await writeFile(log, "an earlier build");
  const seen: string[] = [];
  const ask = async ({ words, onOutput, silence }: EngineRequest): Promise<string> => {
    if (words[0] === "image") return "a".repeat(64);
    for (const chunk of ["Step 1/2\nsec", "ret", " of mine\nStep"]) {
      onOutput?.(chunk);
      seen.push(await readFile(silence?.log() ?? "", "utf8"));
    }
    return "";
  };
  const progress = {
    ...silentProgress,
    mask: (text: string) => text.replaceAll("secret", "<masked>"),
  };
  await obtainNodeImage(engineWith(ask), image, { progress, logFile: log }, neverAborted);
  const whole = "Step 1/2\n<masked> of mine\n";
  expect(seen).toEqual(["Step 1/2\n", "Step 1/2\n", whole]);
  expect(await readFile(log, "utf8")).toBe(`${whole}Step`);
});

test("an image that the engine already has is neither built nor pulled", async () => {
  const done = await obtainNodeImage(
    failing(""),
    { ...image, isPresent: true },
    { progress: silentProgress, logFile },
    neverAborted,
  );
  expect(done).toBeUndefined();
});

test.each([
  [
    image,
    "Build the node image",
    { words: ["build", "--force-rm", "--tag=nodes:1", "-"], stdin: "FROM debian:12\n" },
  ],
  [own, "Pull the node image", { words: ["pull", "nodes:1"], stdin: undefined }],
])("the image %j is obtained in the step %j", async (wanted, title, { words, stdin }) => {
  const commands: EngineRequest[] = [];
  const ask = async (request: EngineRequest): Promise<string> => {
    if (request.words[0] === "image") return "a".repeat(64);
    commands.push(request);
    request.onOutput?.(`Step 1/2 : ${"x".repeat(60)}\n`);
    request.onOutput?.("\n");
    request.onOutput?.("Step 2/2\n ---> 0123\n\n");
    return Promise.resolve("");
  };
  const { progress, steps, updates } = recordingProgress();
  const details: string[] = [];
  const detail = (level: number, text: string): void =>
    void details.push(unmarked(`-${"v".repeat(level)}: ${text}`));
  await obtainNodeImage(
    engineWith(ask),
    wanted,
    { progress: { ...progress, detail }, logFile },
    neverAborted,
  );
  expect(steps).toEqual([`${title} nodes:1: done`]);
  expect(commands).toMatchObject([{ words, silence: { limitMs: 1_200_000 } }]);
  expect(commands[0]?.stdin).toEqual(stdin === undefined ? undefined : Buffer.from(stdin));
  expect(updates).toEqual([`Step 1/2 : ${"x".repeat(48)}…`, "---> 0123"]);
  expect(details.slice(-2)).toEqual(["-vvv: docker: Step 2/2", "-vvv: docker:  ---> 0123"]);
});

test("an image that can't be pulled is an error with the engine's message, and the step has failed", async () => {
  const { progress, steps } = recordingProgress();
  const ask = async (): Promise<string> => {
    throw new ClusterError("engine-failed", "docker pull failed: denied.", {
      facts: { status: 1 },
    });
  };
  const failure = await failureOf(
    obtainNodeImage(engineWith(ask), own, { progress, logFile }, neverAborted),
  );
  expect(failure).toMatchObject({
    id: "image-not-found",
    message: "There is no image nodes:1: docker pull failed: denied.",
    hint: "Run docker images to see the images on this computer.",
    facts: { status: 1, image: "nodes:1" },
  });
  expect(steps).toEqual(["Pull the node image nodes:1: failed"]);
});

test.each([image, own])("a failure of another kind is shown as it is: %j", async (wanted) => {
  const slow = new ClusterError("deadline-passed", "docker exceeded its limit of 1200 s.");
  const ask = async (): Promise<string> => Promise.reject(slow);
  expect(
    await failureOf(
      obtainNodeImage(engineWith(ask), wanted, { progress: silentProgress, logFile }, neverAborted),
    ),
  ).toBe(slow);
});

test("an interrupt is not explained as a failed build", async () => {
  const interrupted = new AbortController();
  const ask = async (): Promise<string> => {
    interrupted.abort(new Error("interrupted"));
    throw new ClusterError("engine-failed", "docker build failed.");
  };
  const failure = await failureOf(
    obtainNodeImage(
      engineWith(ask),
      image,
      { progress: silentProgress, logFile },
      interrupted.signal,
    ),
  );
  expect(failure.message).toBe("interrupted");
});

test.each([
  [image, "built"],
  [own, "pulled"],
])(
  "an image that the engine does not have afterwards, such as one of another builder, is an error",
  async (wanted, what) => {
    const ask = async ({ words }: EngineRequest): Promise<string> =>
      words[0] === "image" ? "" : "done";
    const failure = await failureOf(
      obtainNodeImage(engineWith(ask), wanted, { progress: silentProgress, logFile }, neverAborted),
    );
    expect(failure).toMatchObject({
      id: "image-not-found",
      message: `Docker ${what} the image nodes:1, but does not have it.`,
    });
  },
);
