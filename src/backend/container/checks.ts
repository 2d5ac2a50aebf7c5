import { platform } from "node:os";
import { type Check, type Outcome, pass, skip, warn, isOlder } from "../../model/check.ts";
import type { ClusterRecord } from "../../model/cluster-record.ts";
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
import { toClusters } from "./records/records.ts";
import { type SavedSnapshot, readSnapshots } from "./snapshots/read-snapshots.ts";

/** Returns `doctor`'s checks for clusters of containers, in display order. One of them runs a container for a moment. */
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
 * Reports what interrupted creates and expired clusters left behind, clusters without a running container, snapshots that nobody can
 * restore, and things that only look like ours.
 */
export function leftoversCheck(facts: ContainerFacts, clock: Clock, signal: AbortSignal): Check {
  return checkOfEngine("leftovers", facts, async (_, engine) => {
    const [root, inventory] = await Promise.all([facts.root(), facts.inventory()]);
    const snapshots = await readSnapshots(engine, "all", signal);
    const clusters = toClusters(inventory, { root, passageTo: passageThrough(engine.kind, {}) });
    const outcome = await leftovers({
      clusters,
      root,
      clock,
      removal: (clusterId) => removalCommand(engine, clusterId),
      troubleOf: async () => Promise.resolve(undefined),
    });
    const { name } = engine.kind;
    return withForeignResources(
      withSnapshots(outcome, { snapshots, clusters, engine }),
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
