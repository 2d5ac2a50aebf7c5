import { faultProblems } from "../cluster/faults/plan-fault.ts";
import { hasErrorId } from "../errors.ts";
import { type Fault, beginFault, endFaults } from "../cluster/faults/faults.ts";
import {
  type Shape,
  byRule,
  flag,
  listOf,
  milliseconds,
  optional,
  readArguments,
  required,
  signal,
  text,
} from "../model/read-arguments.ts";
import { wordOf } from "../model/rule.ts";
import {
  type FaultOptionValues,
  type FaultRequest,
  commonOptions,
  faultKinds,
  faultRows,
} from "../platform/faults/fault-kinds.ts";
import { type Cancellation, libraryCall, readCancellation } from "./call-options.ts";
import type { OpenCluster } from "./open-cluster.ts";

/** A fault that has begun. Disposing of it heals it, so `await using` does so at the end of its scope. */
export class ClusterFault implements AsyncDisposable {
  readonly id: string;
  /** Such as `partition between agent_0 and master_0`. */
  readonly description: string;
  /** The nodes that heal it by themselves, such as `agent_0`. */
  readonly nodes: readonly string[];
  /** The time at which they heal it. */
  readonly endsAt: Date;
  readonly #open: OpenCluster;

  constructor({ id, description, nodes, secondsLeft }: Fault, open: OpenCluster) {
    this.id = id;
    this.description = description;
    this.nodes = nodes;
    this.endsAt = new Date(open.runtime.clock.now() + secondsLeft * 1000);
    this.#open = open;
  }

  /** Heals the fault, if it and its cluster are still there. */
  async heal(options: Cancellation = {}): Promise<void> {
    const cancelSignal = readCancellation(options);
    const { backend, record, runtime } = this.#open;
    const healing = { clusterId: record.id, ids: [this.id] };
    const heal = libraryCall(runtime, { cancelSignal }, async (work) =>
      endFaults(work, backend, healing),
    );
    await heal.catch((error: unknown) => {
      if (!hasErrorId(error, "cluster-not-found")) throw error;
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.heal();
  }
}

const names = listOf(text, { minimum: 1 });
const checks = {
  nodes: names,
  switch: flag,
  text,
  number: (given: unknown) => (typeof given === "number" ? undefined : "must be a number"),
};

const own = [...faultKinds.map((kind) => faultRows[kind].options), commonOptions].flatMap(
  (options) => Object.entries(options).map(([name, { type }]) => [name, optional(checks[type])]),
);

/** The options of all kinds of faults. */
export const optionShape = Object.fromEntries(own) as Shape<FaultOptionValues>;

const shape: Shape<FaultRequest & Cancellation> = {
  kind: required(byRule(wordOf(faultKinds))),
  durationMs: required(milliseconds),
  nodes: optional(names),
  ...optionShape,
  cancelSignal: optional(signal),
};

/** Throws `bad-usage` with every problem. */
export async function beginForLibrary(
  open: OpenCluster,
  given: FaultRequest & Cancellation,
): Promise<ClusterFault> {
  const { cancelSignal: _, ...request } = readArguments(given, shape, faultProblems);
  const begin = { clusterId: open.record.id, request };
  const begun = await libraryCall(open.runtime, given, async (work) =>
    beginFault(work, open.backend, begin),
  );
  return new ClusterFault(begun.fault, open);
}
