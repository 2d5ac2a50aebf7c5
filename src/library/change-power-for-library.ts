import { type PowerAction, changePower } from "../cluster/power.ts";
import type { ClusterRecord } from "../model/cluster-record.ts";
import {
  type Shape,
  flag,
  listOf,
  optional,
  readArguments,
  signal,
  text,
} from "../model/read-arguments.ts";
import { type Cancellation, libraryCall } from "./call-options.ts";
import type { OpenCluster } from "./open-cluster.ts";

/** The nodes whose power to change. */
export interface PowerOptions extends Cancellation {
  /**
   * Names such as `agent_0`, addresses or ids of nodes, or `all`, `masters`, `agents`,
   * `public_agents`; default: all.
   */
  readonly nodes?: readonly string[];
}

export interface StopOptions extends PowerOptions {
  /** Cuts the power instead of shutting down; default: false. */
  readonly force?: boolean;
}

const power: Shape<PowerOptions> = {
  nodes: optional(listOf(text, { minimum: 1 })),
  cancelSignal: optional(signal),
};
const stop: Shape<StopOptions> = { ...power, force: optional(flag) };

export async function changePowerForLibrary(
  { backend, record, runtime }: OpenCluster,
  action: PowerAction,
  options: StopOptions,
): Promise<ClusterRecord> {
  const takesForce = action === "stop" || action === "restart";
  const given: StopOptions = readArguments(options, takesForce ? stop : power);
  const { nodes = ["all"], force: isForced = false } = given;
  const request = { clusterId: record.id, action, nodes, isForced };
  const { cluster } = await libraryCall(runtime, given, async (work) =>
    changePower(work, backend, request),
  );
  return cluster;
}
