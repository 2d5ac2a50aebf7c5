import { type FaultRequest, faultProblems } from "../cluster/faults/fault-request.ts";
import { type Fault, endFaults } from "../cluster/faults/faults.ts";
import {
  type Shape,
  among,
  flag,
  listOf,
  milliseconds,
  optional,
  readArguments,
  required,
  signal,
  text,
} from "../model/read-arguments.ts";
import { faultKinds } from "../platform/faults/node-faults.ts";
import { type Cancellation, inLibraryWords, readCancellation } from "./call-options.ts";
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

  /** Heals the fault, if it is still there. */
  async heal(options: Cancellation = {}): Promise<void> {
    const cancelSignal = readCancellation(options);
    const { backend, record, runtime } = this.#open;
    const healing = { clusterId: record.id, ids: [this.id] };
    await inLibraryWords(async () => endFaults(backend, healing, runtime, cancelSignal));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.heal();
  }
}

const number = (given: unknown): string | undefined =>
  typeof given === "number" ? undefined : "must be a number";
const names = listOf(text, { minimum: 1 });

const shape: Shape<FaultRequest & Cancellation> = {
  kind: required(among(faultKinds)),
  durationMs: required(milliseconds),
  nodes: optional(names),
  between: optional(names),
  and: optional(names),
  oneWay: optional(flag),
  delayMs: optional(number),
  lossPercent: optional(number),
  rateKbits: optional(number),
  offsetMs: optional(number),
  folder: optional(text),
  leaveBytes: optional(number),
  cancelSignal: optional(signal),
};

/** Throws `bad-usage` with every problem. */
export const readFaultRequest = (given: FaultRequest & Cancellation): FaultRequest & Cancellation =>
  readArguments(given, shape, faultProblems);
