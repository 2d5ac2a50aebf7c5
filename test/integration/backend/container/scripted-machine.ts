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
import type { ClusterRecord, NodeRecord } from "../../../../src/model/cluster-record.ts";
import { generateKeyPair } from "../../../../src/ssh/keys.ts";
import { createKnownHosts } from "../../../../src/ssh/openssh-files.ts";
import {
  beginCreation,
  creationDirectory,
  creationFiles,
  endCreation,
} from "../../../../src/store/creation-folder.ts";
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

/** A running cluster whose host keys are pinned, as after a creation. */
export async function openRunning(engine: "docker" | "podman") {
  const machine = await openMachine(engine);
  const { backend, world, directory } = machine;
  await beginCreation(directory, "own", creationId);
  await launched(machine);
  await endCreation(directory, "finished");
  const find = async (): Promise<ClusterRecord> => (await backend.find("own", neverAborted))!;
  const [master, agent] = (await find()).nodes as [NodeRecord, NodeRecord];
  const ids = world.engine.containers.map(({ id }) => id) as [string, string];
  const knownHosts = createKnownHosts(creationFiles(directory).knownHosts);
  for (const [index, { ssh }] of [master, agent].entries()) {
    const { stdout } = await world.engine.run(["cp", `${ids[index]}:key`, "-"], new Uint8Array());
    await knownHosts.pin(ssh.host, ssh.port, Buffer.from(stdout.split(" ")[1]!, "base64"));
  }
  const start = async (...references: readonly ("master" | "agent")[]): Promise<void> => {
    const cluster = await find();
    world.engine.calls.length = 0;
    const wanted = cluster.nodes.filter(({ role }) => references.some((each) => each === role));
    await backend.local.power.start(cluster, wanted, neverAborted);
  };
  return { ...machine, find, start, master, agent, ids };
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
