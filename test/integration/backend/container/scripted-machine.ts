/** Clusters of a scripted engine, in the tests' own process. Its program is real; its containers are SSH servers. */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { test } from "bun:test";
import { openContainerBackend } from "../../../../src/backend/container/container-backend.ts";
import { defaultDistribution } from "../../../../src/backend/container/distributions.ts";
import {
  type ContainerOptions,
  readContainerOptions,
} from "../../../../src/backend/container/options.ts";
import type { Creation, CreationRequest } from "../../../../src/backend/contract.ts";
import { generateKeyPair } from "../../../../src/ssh/keys.ts";
import { creationDirectory } from "../../../../src/store/creation-folder.ts";
import { ContainerWorld } from "../../../faults/worlds/container-world.ts";
import type { EngineAnswer } from "../../../faults/worlds/engine-answers.ts";
import { machinesLack } from "../../../support/install-machine.ts";
import { recordingProgress } from "../../../support/recording-progress.ts";
import { neverAborted } from "../../../support/never-aborted.ts";

export const creationId = "0123456789abcdef";
export const { publicKey } = generateKeyPair("test");
const request: CreationRequest<ContainerOptions> = {
  clusterId: "own",
  variant: "oss",
  distribution: defaultDistribution,
  counts: { master: 1, agent: 1, public_agent: 0 },
  options: readContainerOptions({}).options,
  needsCgroups1: false,
  folderDistribution: undefined,
  imagePreparation: undefined,
  openPorts: [80],
  webUi: "http",
};

/** A backend of this machine's own, and its engine. Pauses take no time. */
export async function openMachine(
  engine: "docker" | "podman" = "docker",
  options = request.options,
) {
  const world = await (engine === "docker" ? ContainerWorld.open() : ContainerWorld.openPodman());
  const { progress, steps, told } = recordingProgress();
  const passed = { ms: 0 };
  const clock = { now: () => Date.now() + passed.ms, sleep: async () => {} };
  const backend = await openContainerBackend(
    { environment: world.environment, clock, progress, signal: neverAborted },
    { engine },
  );
  const root = join(world.stateFolder, "cluster-e2e", "container", engine);
  const directory = creationDirectory(root, request.clusterId, creationId);
  await mkdir(root, { recursive: true });
  return {
    world,
    backend,
    progress,
    steps,
    told,
    root,
    directory,
    rights: join(root, ".rights"),
    /** Milliseconds to add to the clock. */
    passed,
    plan: async (lifetimeMs?: number) =>
      backend.plan({ ...request, options, lifetimeMs }, neverAborted),
    [Symbol.asyncDispose]: async () => world[Symbol.asyncDispose](),
  };
}

export type Machine = Awaited<ReturnType<typeof openMachine>>;

export async function claimed({ plan, directory }: Machine): Promise<Creation> {
  const creation = await plan();
  await creation.claim({ creationId, directory }, neverAborted);
  return creation;
}

export async function launched(machine: Machine): Promise<Creation> {
  const creation = await claimed(machine);
  await creation.launch(publicKey, neverAborted);
  return creation;
}

export const statuses = ({ world }: Machine): readonly string[] =>
  world.engine.containers.map(({ status }) => status);
/** An answer of the engine. */
export const printed = (stdout: string): EngineAnswer => ({
  status: 0,
  stdout,
  stderr: "",
  isKilled: false,
});

export const checks = test.skipIf(machinesLack !== undefined);
