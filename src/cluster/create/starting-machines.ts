import { numbered } from "../../system/amounts.ts";
import type { Creation } from "../../backend/contract.ts";
import { ClusterError } from "../../errors.ts";
import {
  type ClusterRecord,
  type NodeRecord,
  nodeCount,
  nodeReference,
} from "../../model/cluster-record.ts";
import { type Semaphore, createSemaphore } from "../../system/concurrency.ts";
import { poll } from "../../system/retry.ts";
import type { Runtime } from "../../system/runtime.ts";
import { orAborted, whileWaitingFor } from "../../system/time-limit.ts";

const firstPauseMs = 200;
const loginsAtOnce = 256;

export interface MachinesToStart {
  readonly creation: Pick<Creation, "launch" | "look" | "firstLogin" | "summary">;
  /** The key that opens all nodes, as an `authorized_keys` line. */
  readonly publicKey: string;
  /** Resolves when the node, which has its address, accepts logins and has booted. */
  readonly logIn: (node: NodeRecord, signal: AbortSignal) => Promise<void>;
}

/** The machines of one cluster, which may still have to be launched. */
export interface Machines {
  launch(signal: AbortSignal): Promise<void>;
  /** Runs until the signal aborts. Fails if a machine can't become a node, or has ended. */
  watch(signal: AbortSignal): Promise<void>;
  /** Yields each node as soon as it has its address. Ends when all have one. */
  arrivals(signal: AbortSignal): AsyncIterable<NodeRecord>;
  /** Resolves when the node accepts logins and has booted. */
  logIn(node: NodeRecord, signal: AbortSignal): Promise<void>;
  /** The cluster as it was last seen; after the last arrival, all nodes have their addresses. */
  readonly cluster: ClusterRecord;
  /** Resolves when the launch has ended and all nodes have been logged in to. */
  untilComplete(signal: AbortSignal): Promise<ClusterRecord>;
}

/** The machines of a creation, from the launch until all accept logins. */
export class StartingMachines implements Machines {
  readonly #machines: MachinesToStart;
  readonly #runtime: Pick<Runtime, "clock" | "progress">;
  readonly #up = new Set<string>();
  readonly #loggedIn = new Set<string>();
  readonly #arrived: NodeRecord[] = [];
  readonly #complete = Promise.withResolvers<ClusterRecord>();
  readonly #slots: Semaphore = createSemaphore(loginsAtOnce);
  readonly #state = {
    latest: undefined as ClusterRecord | undefined,
    isLaunched: false,
    hasJustLaunched: false,
    /** Aborted when there is a reason to look again at once. */
    wakeUp: new AbortController(),
    /** Resolved by the next look. */
    arrival: Promise.withResolvers<void>(),
  };

  constructor(machines: MachinesToStart, runtime: Pick<Runtime, "clock" | "progress">) {
    this.#machines = machines;
    this.#runtime = runtime;
  }

  async launch(signal: AbortSignal): Promise<void> {
    await this.#machines.creation.launch(this.#machines.publicKey, signal);
    this.#state.isLaunched = true;
    this.#state.hasJustLaunched = true;
    this.#state.wakeUp.abort();
  }

  /**
   * Polls the machines until the signal aborts. Fails as soon as one of them can no longer become a
   * node, or has ended.
   */
  async watch(signal: AbortSignal): Promise<never> {
    const waitingFor = (): string => this.#waitingText();
    const { creation } = this.#machines;
    const watchArrivals = async (): Promise<ClusterRecord> => this.#watchArrivals(signal);
    const complete = await whileWaitingFor(waitingFor, watchArrivals, signal);
    await creation.firstLogin.finishBoots?.(signal);
    this.#complete.resolve(complete);
    const { clock } = this.#runtime;
    const look = async (inner: AbortSignal): Promise<undefined> =>
      void (await creation.look(inner));
    const pauseMs = (): number => creation.firstLogin.lookEveryMs;
    await clock.sleep(pauseMs(), signal);
    // The installation itself shows whether any other trouble matters. Only minutes later, it would
    // notice an ended machine as a lost connection.
    const tolerates = (error: unknown): boolean =>
      error instanceof ClusterError && error.id !== "machine-failed";
    return await poll<never>(look, { clock, pauseMs, tolerates }, signal);
  }

  /** Yields each node as soon as it has its address. Ends when all have one. */
  async *arrivals(signal: AbortSignal): AsyncGenerator<NodeRecord, void, undefined> {
    for (;;) {
      const node = this.#arrived.shift();
      if (node !== undefined) yield node;
      else if (this.#areAllUp) return;
      else await orAborted(this.#state.arrival.promise, signal);
    }
  }

  async logIn(node: NodeRecord, signal: AbortSignal): Promise<void> {
    await this.#slots.run(async () => this.#machines.logIn(node, signal), signal);
    this.#loggedIn.add(node.id);
    if (this.areComplete) this.#state.wakeUp.abort();
  }

  /** The cluster as it was at the last look. */
  get cluster(): ClusterRecord {
    const { latest } = this.#state;
    if (latest === undefined) throw new TypeError("Nobody has looked at the machines yet");
    return latest;
  }

  get areComplete(): boolean {
    return this.#state.isLaunched && this.#loggedIn.size === this.#count;
  }

  get #count(): number {
    return nodeCount(this.#machines.creation.summary.counts);
  }

  /** Resolves when they are complete. */
  async untilComplete(signal: AbortSignal): Promise<ClusterRecord> {
    return orAborted(this.#complete.promise, signal);
  }

  /** Polls until all nodes accept logins, and shows what it is waiting for. */
  async #watchArrivals(signal: AbortSignal): Promise<ClusterRecord> {
    const { clock, progress } = this.#runtime;
    const { lookEveryMs } = this.#machines.creation.firstLogin;
    const looks = { quick: 0 };
    const look = async (inner: AbortSignal): Promise<ClusterRecord | undefined> => {
      // The last login doesn't change what the machines look like.
      if (this.areComplete && this.#state.latest !== undefined) return this.#state.latest;
      if (this.#state.hasJustLaunched) looks.quick = 0;
      this.#state.hasJustLaunched = false;
      this.#take(await this.#machines.creation.look(inner));
      return this.areComplete ? this.#state.latest : undefined;
    };
    const pauseMs = (): number => {
      looks.quick += 1;
      // Once all have their addresses, polling can only reveal that a machine has ended.
      return this.#areAllUp
        ? lookEveryMs
        : Math.min(firstPauseMs * 1.25 ** (looks.quick - 1), lookEveryMs);
    };
    const shows = { progress, waitingFor: () => this.#waitingText() };
    return await poll(look, { clock, pauseMs, shows, wakeUp: () => this.#nextWakeUp() }, signal);
  }

  #take(cluster: ClusterRecord): void {
    this.#state.latest = cluster;
    const isNew = (node: NodeRecord): boolean =>
      node.state === "running" && hasAddress(node) && !this.#up.has(node.id);
    const arrived = cluster.nodes.filter(isNew);
    for (const { id } of arrived) this.#up.add(id);
    this.#arrived.push(...arrived);
    const { arrival } = this.#state;
    this.#state.arrival = Promise.withResolvers();
    arrival.resolve();
  }

  get #areAllUp(): boolean {
    return this.#up.size === this.#count;
  }

  #nextWakeUp(): AbortSignal {
    if (!this.#state.hasJustLaunched && !this.areComplete)
      this.#state.wakeUp = new AbortController();
    return this.#state.wakeUp.signal;
  }

  #waitingText(): string {
    const nodes = this.#state.latest?.nodes ?? [];
    // Until a machine is visible, the creation is waiting for the launch.
    if (!this.#state.isLaunched && nodes.length === 0) return "";
    const waiting = nodes.filter(
      (node) => node.state === "running" && !this.#loggedIn.has(node.id),
    );
    const [addressed, bare] = [
      waiting.filter(hasAddress),
      waiting.filter((node) => !hasAddress(node)),
    ];
    const pending = this.#count - this.#loggedIn.size - waiting.length;
    const parts = [
      ...(pending > 0 ? [`${pending} of ${numbered(this.#count, "machine")} to start`] : []),
      ...(bare.length > 0 ? [`${someOf(bare.map(nodeReference))} to get a public address`] : []),
      ...(addressed.length > 0
        ? [`${someOf(addressed.map(nodeReference))} to accept SSH logins`]
        : []),
    ];
    return parts.join(", ");
  }
}

const hasAddress = ({ ssh }: NodeRecord): boolean => ssh.host !== "";

function someOf(names: readonly string[]): string {
  const shown = names.toSorted().slice(0, 3).join(", ");
  return names.length > 3 ? `${shown} and ${names.length - 3} more` : shown;
}
