import { platform } from "node:os";
import { type Check, type Outcome, pass, skip, warn, isOlder } from "../../model/check.ts";
import type { ClusterRecord } from "../../model/cluster-record.ts";
import { parseCreationId } from "../../model/parse-values.ts";
import * as read from "../../model/reader.ts";
import { numbered } from "../../system/amounts.ts";
import { outsideLine } from "../../system/printable.ts";
import type { Clock, Work } from "../../system/runtime.ts";
import { leftovers, withFinding, withForeignResources } from "../shared/foreign-resource.ts";
import { metadataCheck } from "../shared/metadata-check.ts";
import type { EngineName } from "./engine/engine-kind.ts";
import { type Engine, removalCommand } from "./engine/engine.ts";
import {
  type ContainerFacts,
  checkOfEngine,
  containerFacts,
  hostChecks,
  volumeChecks,
} from "./host-checks.ts";
import { passageThrough } from "./engine/passage.ts";
import { nodeVolumeLabel } from "./records/labels.ts";
import { describeEach } from "./records/read-containers.ts";
import { toClusters } from "./records/records.ts";
import { type SavedSnapshot, readSnapshots } from "./snapshots/read-snapshots.ts";

/**
 * Returns `doctor`'s checks for clusters of containers, in display order. One of them runs a
 * container for a moment.
 */
export function containerChecks(work: Work, engine: EngineName | undefined): readonly Check[] {
  const facts = containerFacts(work, engine, platform());
  const host = hostChecks(facts);
  return [
    engineCheck(facts),
    ...host,
    ...volumeChecks(facts, work.environment, work.signal),
    metadataCheck(work.environment),
    leftoversCheck(facts, work.clock, work.signal),
  ];
}

const limitMs = 40_000;

export function engineCheck(facts: ContainerFacts): Check {
  return { name: "engine", limitMs, run: async () => judge(facts) };
}

async function judge(facts: ContainerFacts): Promise<Outcome> {
  const [{ kind }, { version, operatingSystem }] = await Promise.all([
    facts.engine(),
    facts.engineFacts(),
  ]);
  if (!/^\d/.test(version)) return skip(`${kind.title} answers, but does not say its version.`);
  const found = `${kind.title} ${outsideLine(version)}`;
  if (!isOlder(version, kind.leastVersion))
    return pass(`${found} (${outsideLine(operatingSystem)})`);
  return warn(
    `${found} is older than ${kind.leastVersion.join(".")}, the oldest version that this program supports.`,
    kind.advice.install,
  );
}

/**
 * Reports what interrupted creates and expired clusters left behind, clusters without a running
 * container, snapshots that nobody can restore, and things that only look like ours.
 */
export function leftoversCheck(facts: ContainerFacts, clock: Clock, signal: AbortSignal): Check {
  return checkOfEngine("leftovers", facts, async (_, engine) => {
    const [root, inventory] = await Promise.all([facts.root(), facts.inventory()]);
    const snapshots = await readSnapshots(engine, "all", signal);
    const volumes = await readNodeVolumes(engine, signal);
    const clusters = toClusters(inventory, { root, passageTo: passageThrough(engine.kind, {}) });
    const outcome = await leftovers({
      clusters,
      root,
      clock,
      removal: (clusterId) => removalCommand(engine, clusterId),
      troubleOf: async () => Promise.resolve(undefined),
    });
    const { name } = engine.kind;
    const found = { snapshots, clusters, engine };
    return withForeignResources(
      withVolumes(withSnapshots(outcome, found), volumes, found),
      inventory.foreignResources,
      `If nobody needs them, remove them with ${name} rm or ${name} network rm`,
    );
  });
}

interface Found {
  readonly snapshots: readonly SavedSnapshot[];
  readonly clusters: readonly ClusterRecord[];
  readonly engine: Engine;
}

function withSnapshots(outcome: Outcome, { snapshots, clusters, engine }: Found): Outcome {
  const findings = snapshots.flatMap((snapshot) => {
    const { clusterId, name } = snapshot;
    const what = `The snapshot "${name}" of cluster "${clusterId}"`;
    const hasCluster = clusters.some((cluster) => cluster.creationId === snapshot.creationId);
    if (!hasCluster)
      return [{ message: `${what} has outlived it.`, remedy: removalWords(snapshot, engine) }];
    const remedy = `cluster-container snapshot --cluster-id ${clusterId} ${engine.option} delete ${name}`;
    return snapshot.nodes === undefined
      ? [{ message: `${what} is incomplete.`, remedy: remedy.replace("  ", " ") }]
      : [];
  });
  return findings.reduce((sum, { message, remedy }) => withFinding(sum, message, remedy), outcome);
}

/** Reports the volumes of nodes whose cluster is gone without them, as after `system prune`. */
function withVolumes(
  outcome: Outcome,
  volumes: readonly NodeVolume[],
  { clusters, engine: { kind } }: Pick<Found, "clusters" | "engine">,
): Outcome {
  const names = volumes.flatMap(({ name, creationId }) =>
    clusters.some((cluster) => cluster.creationId === creationId) ? [] : [name],
  );
  if (names.length === 0) return outcome;
  const message = `${numbered(names.length, "volume")} of nodes that are gone.`;
  return withFinding(outcome, message, `${kind.name} volume rm ${names.join(" ")}`);
}

interface NodeVolume {
  readonly name: string;
  readonly creationId: string;
}

async function readNodeVolumes(
  engine: Engine,
  signal: AbortSignal,
): Promise<readonly NodeVolume[]> {
  const words = ["volume", "ls", "--quiet", `--filter=label=${nodeVolumeLabel}`];
  const described = await describeEach(engine, { words, kind: "volume" }, signal);
  return described.flatMap((volume) => readNodeVolume(volume) ?? []);
}

const readNodeVolume = read.refined(
  read.object({
    Name: read.matching(/^[0-9a-f]{64}$/),
    Labels: read.object({ [nodeVolumeLabel]: parseCreationId }),
  }),
  ({ Name: name, Labels }): NodeVolume => ({ name, creationId: Labels[nodeVolumeLabel] }),
);

/** Returns the engine's commands that remove the snapshot: its cluster is gone, so no command of ours can find it. */
function removalWords({ images, volumes }: SavedSnapshot, { kind }: Engine): string {
  return [
    ...(images.length === 0
      ? []
      : [`${kind.name} image rm ${images.flatMap(({ names }) => names).join(" ")}`]),
    ...(volumes.length === 0
      ? []
      : [`${kind.name} volume rm ${volumes.map(({ volume }) => volume).join(" ")}`]),
  ].join("; ");
}
