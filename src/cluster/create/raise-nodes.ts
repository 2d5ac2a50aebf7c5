import type { Creation } from "../../model/creation.ts";
import type { Surroundings } from "../../system/surroundings.ts";
import { ClusterError } from "../../errors.ts";
import { nodeReference, type ClusterRecord, type NodeRecord } from "../../model/cluster-record.ts";
import { createTurns } from "../../ssh/turns.ts";
import { TaskGroup } from "../../system/task-group.ts";

const firstPauseMs = 200;
const loginsAtOnce = 256;

/** What is put on the machines as part of their creation. Disposing of it ends what is under way and awaits that. */
export interface CreationInstaller extends AsyncDisposable {
  /** Prepares a node that lets us in, while others still start. */
  prepare(node: NodeRecord): Promise<void>;
  /** Resolves when the creation may be called finished; called once, when all nodes let us in. */
  start(cluster: ClusterRecord): Promise<void>;
}

export interface Raising {
  readonly creation: Pick<Creation, "launch" | "look" | "lookEveryMs">;
  /** How many nodes there will be. */
  readonly count: number;
  /** Opens all of them: an `authorized_keys` line. */
  readonly publicKey: string;
  /** Resolves when the node, which has its address, can be logged in to. */
  readonly logIn: (node: NodeRecord, signal: AbortSignal) => Promise<void>;
  readonly installer: (signal: AbortSignal) => CreationInstaller;
}

/**
 * Launches the machines, looks at them until all are up, logs in to each as soon as it has its address, and prepares each as soon as it lets us in;
 * then starts the installation. When any of this fails, everything else is aborted, and has ended when this throws.
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
  /** The creation's own. */
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
      // When all have their addresses, the only news that a look can bring is that a machine ended.
      const pause = arrivals.areAllUp ? creation.lookEveryMs : pauseMs;
      // Rejects both when it is woken and when it is aborted.
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

/** The creation's time limit doesn't know what it cut off. */
function withWaiting(error: unknown, waiting: string): unknown {
  if (!(error instanceof ClusterError) || error.id !== "deadline-passed" || waiting === "") return error;
  const hint = error.hint === undefined ? {} : { hint: error.hint };
  return new ClusterError(error.id, `${error.message} It was waiting for ${waiting}.`, {
    ...hint,
    facts: error.facts,
    cause: error,
  });
}

/** How far the machines of a creation have come. */
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

  /** Those that have their address now and had none before. */
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

  /** Whether the launch has ended since this was last asked. */
  hasJustLaunched(): boolean {
    const { hasJustLaunched } = this.#state;
    this.#state.hasJustLaunched = false;
    return hasJustLaunched;
  }

  /** Aborted as soon as there is a reason to look again at once. */
  nextNews(): AbortSignal {
    if (!this.#state.hasJustLaunched && !this.areComplete) this.#state.news = new AbortController();
    return this.#state.news.signal;
  }

  waitingText(nodes: readonly NodeRecord[]): string {
    // As long as nothing can be seen, the launch is what is waited for.
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
