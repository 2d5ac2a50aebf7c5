import { type Counts, type Role, roles } from "../../model/cluster-record.ts";
import { runAtOnce } from "../../system/concurrency.ts";
import { clusterExists } from "../local-backend.ts";
import type { ContainerOptions } from "./container-options.ts";
import { destroyCommand, type Engine } from "./engine.ts";
import { isNameTaken } from "./engine-errors.ts";
import type { Reach } from "./engine-facts.ts";
import { type LabelValues, labelWords } from "./labels.ts";
import type { SystemFlags } from "./system-flags.ts";

const atOnce = 6;
const publishedPorts = [22, 80, 443];

/** All that the nodes of one cluster have in common. */
export interface LaunchPlan {
  readonly clusterId: string;
  readonly counts: Counts;
  readonly creation: ContainerOptions;
  readonly image: string;
  readonly reach: Reach;
  readonly networkId: string;
  readonly labels: LabelValues;
  readonly system: SystemFlags;
  /** An archive, unpacked at the node's root before it starts. */
  readonly identityOf: (node: NodeName) => Promise<Uint8Array>;
}

/**
 * Makes and starts all nodes. The first one alone, since its name is what two creates of one id at the same moment can't both have: the
 * second one fails as `cluster-exists`.
 */
export async function launchNodes(engine: Engine, plan: LaunchPlan, signal: AbortSignal): Promise<void> {
  const nodes = roles.flatMap((role) => Array.from({ length: plan.counts[role] }, (_, index) => ({ role, index })));
  const [first, ...others] = nodes;
  if (first === undefined) return;
  signal.throwIfAborted();
  const create = async (node: NodeName): Promise<string> => {
    const words = createWords(plan, node);
    try {
      return await engine.change({ words });
    } catch (error) {
      if (!isNameTaken(error)) throw error;
      throw clusterExists(plan.clusterId, { removal: destroyCommand(engine, plan.clusterId), cause: error });
    }
  };
  const begin = async (id: string, node: NodeName): Promise<void> => {
    await engine.change({ words: ["cp", "-", `${id}:/`], stdin: await plan.identityOf(node) });
    signal.throwIfAborted();
    await engine.change({ words: ["start", id] });
  };
  const firstId = await create(first);
  const tasks = [
    async () => begin(firstId, first),
    ...others.map((node) => async () => begin(await create(node), node)),
  ];
  await runAtOnce(tasks, atOnce, async (task) => task(), signal);
}

interface NodeName {
  readonly role: Role;
  readonly index: number;
}

function createWords(plan: LaunchPlan, { role, index }: NodeName): readonly string[] {
  const { creation, reach, system } = plan;
  const [program = "", ...rest] = system.command;
  const hostname = `${role.replace("_", "-")}-${index}`;
  return [
    "create",
    `--name=cluster-e2e-${plan.clusterId}-${role}_${index}`,
    ...labelWords({ ...plan.labels, role, index: String(index) }),
    `--hostname=${hostname}`,
    `--network=${plan.networkId}`,
    `--network-alias=${hostname}`,
    // Whatever the image says of itself.
    "--user=0:0",
    `--entrypoint=${program}`,
    ...system.words,
    ...(reach === "published" ? publishedPorts.map((port) => `--publish=127.0.0.1::${port}`) : []),
    ...creation.volumes.map((volume) => `--volume=${volume}`),
    ...(creation.memory === undefined ? [] : [`--memory=${creation.memory}`]),
    ...(creation.cpus === undefined ? [] : [`--cpus=${creation.cpus}`]),
    plan.image,
    ...rest,
  ];
}
