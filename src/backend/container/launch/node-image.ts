import type { CreationRequest } from "../../contract.ts";
import { ClusterError, messageOf } from "../../../errors.ts";
import { outside } from "../../../outside-text.ts";
import type { Progress } from "../../../system/runtime.ts";
import { type BuildFailure, readBuildFailure } from "./build-failure.ts";
import type { ContainerOptions } from "../options.ts";
import { nodeRecipe } from "./containerfiles.ts";
import type { Engine } from "../engine/engine.ts";
import { means } from "../engine/engine-errors.ts";
import { outsideLines } from "../../../system/printable.ts";

const buildLimitMs = 20 * 60_000;

/** The image that nodes are created from, and how to get it if the engine doesn't have it. */
export interface NodeImage {
  readonly name: string;
  readonly isPresent: boolean;
  /** Absent for the user's own image, which is pulled. */
  readonly containerfile?: string;
}

/** Only looks for the image; doesn't get it. */
export async function findNodeImage(
  engine: Engine,
  distribution: string,
  { options, imagePreparation }: Pick<CreationRequest<ContainerOptions>, "options" | "imagePreparation">,
  signal: AbortSignal,
): Promise<NodeImage> {
  if (options.nodeImage !== undefined) {
    return { name: options.nodeImage, isPresent: await isPresent(engine, options.nodeImage, signal) };
  }
  const { image, containerfile } = nodeRecipe(distribution, imagePreparation);
  return { name: image, isPresent: await isPresent(engine, image, signal), containerfile };
}

async function isPresent(engine: Engine, image: string, signal: AbortSignal): Promise<boolean> {
  const words = ["image", "inspect", "--format={{.Id}}", image];
  const id = await engine.ask({ words, accepts: (stderr) => means(stderr, "gone") }, signal);
  return /^(?:sha256:)?[0-9a-f]{64}$/.test(id);
}

/** Builds or pulls the image if it is missing, which takes minutes. Throws `image-not-found` if that fails. */
export async function obtainNodeImage(
  engine: Engine,
  image: NodeImage,
  progress: Progress,
  signal: AbortSignal,
): Promise<void> {
  if (image.isPresent) return;
  const isBuilt = image.containerfile !== undefined;
  using step = progress.start(isBuilt ? "Build the node image" : "Pull the node image", image.name);
  const output: string[] = [];
  const onOutput = (chunk: string): void => {
    output.push(chunk);
    const [line] = outsideLines(chunk, 1, 60);
    if (line !== undefined) step.update(line);
    for (const text of chunk.trimEnd().split("\n")) progress.detail(3, `${engine.kind.name}: ${outside(text)}`);
  };
  // Without --force-rm, Docker's classic builder keeps the container of the step that failed.
  const request = isBuilt
    ? { words: ["build", "--force-rm", `--tag=${image.name}`, "-"], stdin: Buffer.from(image.containerfile ?? "") }
    : { words: ["pull", image.name] };
  try {
    await engine.ask({ ...request, onOutput, limitMs: buildLimitMs }, signal);
  } catch (error) {
    signal.throwIfAborted();
    throw isBuilt ? notBuilt(engine, image, output.join(""), error) : notPulled(engine, image, error);
  }
  step.done();
}

function notBuilt({ kind }: Engine, image: NodeImage, output: string, error: unknown): unknown {
  if (!(error instanceof ClusterError) || error.id !== "engine-failed") return error;
  const { reason, step, cause } = readBuildFailure(output);
  const where = step === undefined ? "" : ` (at "${outside(step)}")`;
  const said = reason === undefined ? undefined : outside(reason);
  const why = said ?? "the build's output does not name the cause";
  return new ClusterError(
    "image-not-found",
    `Cannot build the node image ${image.name}: ${kind.name} build failed${where}: ${why}.`,
    {
      hint: `${buildAdvice(kind.title)[cause]} Or pass your own image with \`nodeImage\`. Pass -vvv to see the whole build.`,
      facts: {
        status: error.facts["status"],
        image: image.name,
        step: step === undefined ? undefined : outside(step),
        cause,
      },
      cause: error,
    },
  );
}

const buildAdvice = (title: string): Readonly<Record<BuildFailure["cause"], string>> => ({
  network: `Make sure that ${title}'s containers can reach the distribution's package servers; src/backend/container/README.md in the repository explains how to build behind a proxy or with a mirror.`,
  registry: `Make sure that ${title} can reach the registry of the base image, or load that image under its name.`,
  runtime: `${title} cannot run a build's commands on this machine. Check whether it can run any container: ${title.toLowerCase()} run --rm IMAGE true.`,
  unknown: "Check the network: the base image and the packages come from there.",
});

function notPulled({ kind }: Engine, image: NodeImage, error: unknown): unknown {
  if (!(error instanceof ClusterError) || error.id !== "engine-failed") return error;
  return new ClusterError("image-not-found", `There is no image ${image.name}: ${messageOf(error)}`, {
    hint: `Run ${kind.name} images to see the images on this machine.`,
    facts: { ...ClusterError.marked(error).facts, image: image.name },
    cause: error,
  });
}
