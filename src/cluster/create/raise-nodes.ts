import type { Creation } from "../../model/creation.ts";
import type { Surroundings } from "../../system/surroundings.ts";
import { ClusterError } from "../../errors.ts";
import { nodeReference, type ClusterRecord, type NodeRecord } from "../../model/cluster-record.ts";
import { createTurns } from "../../ssh/turns.ts";
import { TaskGroup } from "../../system/task-group.ts";

const firstPauseMs = 200;
const loginsAtOnce = 256;

/** Installs on the machines as part of their creation. Disposing of it ends its work and waits until that has ended. */
export interface CreationInstaller extends AsyncDisposable {
  /** Prepares a node that accepts logins, while others are still starting. */
  prepare(node: NodeRecord): Promise<void>;
  /** Resolves when the creation may count as finished. Called once, when all nodes accept logins. */
  start(cluster: ClusterRecord): Promise<void>;
}

export interface Raising {
  readonly creation: Pick<Creation, "launch" | "look" | "lookEveryMs">;
  /** How many nodes there will be. */
  readonly count: number;
  /** The key that opens all nodes, as an `authorized_keys` line. */
  readonly publicKey: string;
  /** Resolves when the node, which has its address, accepts logins. */
  readonly logIn: (node: NodeRecord, signal: AbortSignal) => Promise<void>;
  readonly installer: (signal: AbortSignal) => CreationInstaller;
}

/**
 * Launches the machines, polls until all are up, logs in to each as soon as it has its address, prepares each as soon as it accepts logins, and then
 * starts the installation. If any of this fails, it aborts everything else and waits for it to end before it throws.
 */
export async function raiseNodes(
  raising: Raising,
  surroundings: Surroundings,
  signal: AbortSignal,
): Promise<ClusterRecord> {
  await using tasks = new TaskGroup(signal);
  await using installer = raising.installer(tasks.signal);
  const arrivals = new Arrivals(raising.count);
  const { creation, publicKey } = raising;
  tasks.start(async (inner) => {
    await creation.launch(publicKey, inner);
    arrivals.launchEnded();
  });
  const turns = createTurns(loginsAtOnce);
  const onUp = (node: NodeRecord): void =>
    tasks.start(async (inner) => {
      await turns.run(async () => raising.logIn(node, inner), inner);
      arrivals.loggedInTo(node);
      await installer.prepare(node);
    });
  const cluster = await untilAllLetUsIn({ creation, arrivals, onUp, signal }, surroundings, tasks.signal);
  await installer.start(cluster);
  return cluster;
}

interface Watch {
  readonly creation: Raising["creation"];
  readonly arrivals: Arrivals;
  /** Called once for each machine, when it has its address. */
  readonly onUp: (node: NodeRecord) => void;
  /** The signal of the creation. */
  readonly signal: AbortSignal;
}

async function untilAllLetUsIn(
  { creation, arrivals, onUp, signal: outer }: Watch,
  { clock, progress }: Surroundings,
  signal: AbortSignal,
): Promise<ClusterRecord> {
  const waiting = { for: "" };
  try {
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 1.25, creation.lookEveryMs)) {
      const cluster = await creation.look(signal);
      for (const node of arrivals.newlyUp(cluster.nodes)) onUp(node);
      waiting.for = arrivals.waitingText(cluster.nodes);
      progress.waiting(waiting.for === "" ? "" : `waiting for ${waiting.for}`);
      if (arrivals.areComplete) return cluster;
      // Once all have their addresses, polling can only reveal that a machine has ended.
      const pause = arrivals.areAllUp ? creation.lookEveryMs : pauseMs;
      // The sleep rejects both when it is woken and when it is aborted.
      await clock.sleep(pause, AbortSignal.any([signal, arrivals.nextNews()])).catch(() => {});
      signal.throwIfAborted();
      if (arrivals.areComplete) return cluster;
      if (arrivals.hasJustLaunched()) pauseMs = firstPauseMs;
    }
  } catch (error) {
    throw outer.aborted && error === outer.reason ? withWaiting(error, waiting.for) : error;
  } finally {
    progress.waiting("");
  }
}

/** Adds what was being waited for, because the creation's time limit doesn't know what it interrupted. */
function withWaiting(error: unknown, waiting: string): unknown {
  if (!(error instanceof ClusterError) || error.id !== "deadline-passed" || waiting === "") return error;
  const hint = error.hint === undefined ? {} : { hint: error.hint };
  return new ClusterError(error.id, `${error.message} It was waiting for ${waiting}.`, {
    ...hint,
    facts: error.facts,
    cause: error,
  });
}

/** Tracks how far the machines of a creation have come. */
class Arrivals {
  readonly #count: number;
  readonly #up = new Set<string>();
  readonly #loggedIn = new Set<string>();
  readonly #state = { isLaunched: false, hasJustLaunched: false, news: new AbortController() };

  constructor(count: number) {
    this.#count = count;
  }

  launchEnded(): void {
    this.#state.isLaunched = true;
    this.#state.hasJustLaunched = true;
    this.#state.news.abort();
  }

  loggedInTo({ id }: NodeRecord): void {
    this.#loggedIn.add(id);
    if (this.areComplete) this.#state.news.abort();
  }

  /** Returns the nodes that have received their address since the last call. */
  newlyUp(nodes: readonly NodeRecord[]): readonly NodeRecord[] {
    const found = nodes.filter(({ id, state, ssh }) => state === "running" && ssh.host !== "" && !this.#up.has(id));
    for (const { id } of found) this.#up.add(id);
    return found;
  }

  get areAllUp(): boolean {
    return this.#up.size === this.#count;
  }

  get areComplete(): boolean {
    return this.#state.isLaunched && this.#loggedIn.size === this.#count;
  }

  /** Whether the launch has ended since the last call. */
  hasJustLaunched(): boolean {
    const { hasJustLaunched } = this.#state;
    this.#state.hasJustLaunched = false;
    return hasJustLaunched;
  }

  /** Returns a signal that aborts as soon as there is a reason to poll again at once. */
  nextNews(): AbortSignal {
    if (!this.#state.hasJustLaunched && !this.areComplete) this.#state.news = new AbortController();
    return this.#state.news.signal;
  }

  waitingText(nodes: readonly NodeRecord[]): string {
    // Until a machine is visible, the creation is waiting for the launch.
    if (!this.#state.isLaunched && nodes.length === 0) return "";
    const unmet = nodes.filter((node) => node.state === "running" && !this.#loggedIn.has(node.id));
    const pending = this.#count - this.#loggedIn.size - unmet.length;
    const parts = [
      ...(pending > 0 ? [`${pending} of ${this.#count} machines to start`] : []),
      ...(unmet.length > 0 ? [`${someOf(unmet.map(nodeReference))} to let us in over SSH`] : []),
    ];
    return parts.join(", ");
  }
}

function someOf(names: readonly string[]): string {
  const shown = names.toSorted().slice(0, 3).join(", ");
  return names.length > 3 ? `${shown} and ${names.length - 3} more` : shown;
}
