import { runChaos } from "../cluster/faults/chaos.ts";
import {
  type ChaosOptions,
  chaosProblems,
  chaosTargets,
  usualChaos,
} from "../cluster/faults/chaos-plan.ts";
import {
  type Shape,
  byRule,
  listOf,
  milliseconds,
  optional,
  readArguments,
  required,
  signal,
} from "../model/read-arguments.ts";
import { wholeNumber, wordOf } from "../model/rule.ts";
import { faultKinds } from "../platform/faults/fault-kinds.ts";
import { type Cancellation, inLibraryWords, signalOf } from "./call-options.ts";
import { optionShape } from "./cluster-fault.ts";
import type { OpenCluster } from "./open-cluster.ts";

type Required = "seed" | "kinds";

/** Faults to draw. Options of kinds, such as `unit`, apply to each fault of the kind; what isn't given is drawn. */
export interface ChaosRequest
  extends Pick<ChaosOptions, Required>, Partial<Omit<ChaosOptions, Required>>, Cancellation {
  /** No fault begins after this time; default: they begin until the result is disposed of. */
  readonly durationMs?: number | undefined;
}

/** Faults that begin and heal at random, until this is stopped or disposed of. */
export class ClusterChaos implements AsyncDisposable {
  readonly seed: number;
  readonly #ending = new AbortController();
  readonly #ended: Promise<void>;

  constructor(request: ChaosRequest, open: OpenCluster) {
    const { durationMs } = request;
    const options = optionsOf(request);
    this.seed = options.seed;
    const outer = signalOf(request);
    const inner = AbortSignal.any([outer, this.#ending.signal]);
    const { backend, record, runtime } = open;
    const chaos = { clusterId: record.id, options, durationMs };
    this.#ended = inLibraryWords(async () => {
      try {
        await runChaos({ ...runtime, signal: inner }, backend, chaos);
      } catch (error) {
        if (!this.#ending.signal.aborted || outer.aborted) throw error;
      }
    });
    // It is thrown when the caller waits.
    this.#ended.catch(() => {});
  }

  /**
   * Resolves when the last fault has been healed. Throws why a fault could not begin or did not
   * show, or why the cluster did not recover.
   */
  async wait(): Promise<void> {
    await this.#ended;
  }

  /** Begins no other fault and heals the present one. Throws what `wait` throws, if chaos has failed already. */
  async stop(): Promise<void> {
    this.#ending.abort(new Error("Chaos is stopped."));
    await this.#ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

const shape: Shape<ChaosRequest> = {
  seed: required(byRule(wholeNumber(0, 2 ** 32 - 1))),
  kinds: required(listOf(byRule(wordOf(faultKinds)), { minimum: 1 })),
  everyMs: optional(milliseconds),
  targets: optional(listOf(byRule(wordOf(chaosTargets)), { minimum: 1 })),
  recoverMs: optional(milliseconds),
  only: optional(listOf(byRule(wholeNumber(1, 100_000)), { minimum: 1 })),
  durationMs: optional(milliseconds),
  ...optionShape,
  cancelSignal: optional(signal),
};

/** Throws `bad-usage` with every problem. */
export const readChaosRequest = (given: ChaosRequest): ChaosRequest =>
  readArguments(given, shape, (request) => chaosProblems(optionsOf(request)));

function optionsOf({
  durationMs: _,
  cancelSignal: __,
  everyMs = usualChaos.everyMs,
  targets = usualChaos.targets,
  ...given
}: ChaosRequest): ChaosOptions {
  return { ...given, everyMs, targets };
}
