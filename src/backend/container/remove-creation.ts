import { messageOf } from "../../errors.ts";
import { mapConcurrently } from "../../system/concurrency.ts";
import type { Clock } from "../../system/runtime.ts";
import { waits } from "../../system/waits.ts";
import { indicates } from "./engine/engine-errors.ts";
import type { Engine } from "./engine/engine.ts";
import { type CreationName, nodeVolumeLabel } from "./records/labels.ts";
import {
  type ClusterNetwork,
  type NodeContainer,
  describe,
  readContainers,
} from "./records/read-containers.ts";
import { shortId } from "./records/records.ts";
import { deleteAllSnapshots, removeUnusedImages } from "./snapshots/remove-snapshots.ts";

const atOnce = 6;

/** Stops all containers of a creation but keeps them, so that they can be examined. */
export async function stopCreation(
  engine: Engine,
  name: CreationName,
  signal: AbortSignal,
): Promise<void> {
  const { containers } = await findCreation(engine, name, signal);
  const running = containers.filter(({ status }) =>
    ["running", "paused", "restarting"].includes(status),
  );
  const kill = async ({ id }: NodeContainer): Promise<unknown> =>
    engine.change({
      words: ["kill", id],
      accepts: (stderr) => indicates(stderr, "gone") || indicates(stderr, "off"),
    });
  await mapConcurrently(running, atOnce, kill, signal);
}

/**
 * Removes all containers of a creation, and its networks unless `keepsNetworks` is set. Retries
 * while some remain, because an engine under load reports busy devices and removals already in
 * progress. Gives up after several tries in which none of them goes, and resolves with a sentence
 * about what is left then.
 */
export async function removeCreation(
  engine: Engine,
  { keepsNetworks = false, ...name }: CreationName & { readonly keepsNetworks?: boolean },
  clock: Clock,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { mostTries, pauseMs } = waits.containerRemoval;
  const problems = new Set<string>();
  const last = { count: Infinity };
  for (let attempt = 1; ; attempt += 1) {
    const found = await findCreation(engine, name, signal);
    const { containers, networks } = keepsNetworks ? { ...found, networks: [] } : found;
    if (containers.length === 0 && networks.length === 0) return undefined;
    const count = containers.length + networks.length;
    if (count < last.count) attempt = 1;
    last.count = count;
    if (attempt > mostTries) return leftText(containers, networks, problems);
    problems.clear();
    const remove = async (words: readonly string[]): Promise<void> => {
      await engine.change({ words }).catch((error: unknown) => {
        problems.add(messageOf(error));
      });
    };
    await mapConcurrently(
      containers,
      atOnce,
      async ({ id }) => remove([...engine.kind.removeWords, id]),
      signal,
    );
    // Without its network, a container can no longer be recognized as ours, so the network goes last.
    if (problems.size === 0 && !keepsNetworks)
      await mapConcurrently(
        await ownerlessVolumes(engine, name, signal),
        atOnce,
        async (volume) => remove(["volume", "rm", volume]),
        signal,
      );
    if (problems.size === 0)
      await mapConcurrently(
        networks,
        atOnce,
        async ({ id }) => remove(["network", "rm", id]),
        signal,
      );
    if (problems.size > 0) await clock.sleep(pauseMs(), signal);
  }
}

/** Returns the volumes of nodes that are gone without them, as after `container prune`. */
async function ownerlessVolumes(
  engine: Engine,
  { creationId }: Pick<CreationName, "creationId">,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const words = ["volume", "ls", "--quiet", `--filter=label=${nodeVolumeLabel}=${creationId}`];
  return (await engine.ask({ words }, signal)).match(/^[0-9a-f]{64}$/gm) ?? [];
}

/**
 * Removes a creation with its snapshots, and the images that only it used any more. The network
 * goes last, because it makes the cluster findable. Resolves with a sentence about what is left, if
 * anything.
 */
export async function removeWithSnapshots(
  engine: Engine,
  name: CreationName,
  clock: Clock,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { copiedFrom } = await findCreation(engine, name, signal);
  return (
    (await removeCreation(engine, { ...name, keepsNetworks: true }, clock, signal)) ??
    (await deleteAllSnapshots(engine, name, clock, signal)) ??
    (await removeUnusedImages(engine, copiedFrom, signal)) ??
    (await removeCreation(engine, name, clock, signal))
  );
}

function leftText(
  containers: readonly NodeContainer[],
  networks: readonly PresentNetwork[],
  problems: ReadonlySet<string>,
): string {
  const things = [
    ...containers.map((container) => `container ${shortId(container)}`),
    ...networks.map((network) => `network ${shortId(network)}`),
  ];
  return `Left behind: ${things.join(", ")} (${[...problems].join("; ")}).`;
}

type PresentNetwork = ClusterNetwork & { readonly id: string };

const isPresent = (network: ClusterNetwork): network is PresentNetwork => network.id !== undefined;

async function findCreation(
  engine: Engine,
  { clusterId, creationId }: CreationName,
  signal: AbortSignal,
) {
  // A caller that names a creation has found it before.
  const recorded = [{ clusterId, creationId }];
  const { containers, networks } = readContainers({
    ...(await describe(engine, { clusterId }, signal)),
    recorded,
  });
  const own = networks.filter((network) => network.creationId === creationId);
  return {
    containers: containers.filter((container) => container.creationId === creationId),
    networks: own.filter(isPresent),
    // The creations from whose snapshots a copy was made. They may have left images that only it used.
    copiedFrom: own.flatMap(({ copiedFrom }) => copiedFrom),
  };
}
