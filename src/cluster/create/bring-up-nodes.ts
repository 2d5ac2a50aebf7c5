import type { Creation } from "../../model/creation.ts";
import { poll } from "../../system/poll.ts";
import type { Runtime } from "../../system/runtime.ts";
import { ClusterError, hasErrorId } from "../../errors.ts";
import { nodeReference, type ClusterRecord, type NodeRecord } from "../../model/cluster-record.ts";
import { createSemaphore } from "../../system/semaphore.ts";
import { TaskGroup } from "../../system/task-group.ts";
import { whileWaitingFor } from "../../system/time-limit.ts";

const firstPauseMs = 200;
const loginsAtOnce = 256;

/** Installs on the machines as part of their creation. Disposing of it ends its work and waits until that has ended. */
export interface CreationInstaller extends AsyncDisposable {
  /** Prepares a node that accepts logins, while others are still starting. */
  prepare(node: NodeRecord): Promise<void>;
  /** Resolves when the creation may count as finished. Called once, when all nodes accept logins. */
  start(cluster: ClusterRecord): Promise<void>;
}

export interface BringUpRequest {
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
export async function bringUpNodes(
  raising: BringUpRequest,
  runtime: Runtime,
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
  const slots = createSemaphore(loginsAtOnce);
  const onUp = (node: NodeRecord): void =>
    tasks.start(async (inner) => {
      await slots.run(async () => raising.logIn(node, inner), inner);
      arrivals.loggedInTo(node);
      await installer.prepare(node);
    });
  const watch = { creation, arrivals, onUp, signal };
  const cluster = await untilAllLetUsIn(watch, runtime, tasks.signal).catch(async (error: unknown) => {
    throw await tasks.explain(error);
  });
  tasks.start(async (inner) => watchMachines(creation, runtime, inner));
  const install = async (): Promise<void> => installer.start(cluster);
  try {
    await whileWaitingFor(() => "the installation to start on every node", install, signal);
  } catch (error) {
    throw await causeOf(error, { creation, signal, inner: tasks.signal });
  }
  return cluster;
}

/** Fails as soon as a machine has ended. Without it, the installation would notice only minutes later, as a lost connection. */
async function watchMachines(creation: Watch["creation"], { clock }: Runtime, signal: AbortSignal): Promise<void> {
  const look = async (inner: AbortSignal): Promise<undefined> => void (await creation.look(inner));
  const pauseMs = (): number => creation.lookEveryMs;
  await clock.sleep(pauseMs(), signal);
  // The installation itself shows whether any other trouble matters.
  const tolerates = (error: unknown): boolean => error instanceof ClusterError && error.id !== "machine-failed";
  await poll(look, { clock, pauseMs, tolerates }, signal);
}

/** Returns what made the installation fail: a machine that ended explains why the connection to it was lost. */
async function causeOf(
  error: unknown,
  {
    creation,
    signal,
    inner,
  }: { readonly creation: Watch["creation"]; readonly signal: AbortSignal; readonly inner: AbortSignal },
): Promise<unknown> {
  if (signal.aborted) return error;
  if (inner.aborted) return inner.reason;
  if (!hasErrorId(error, "connection-failed")) return error;
  try {
    await creation.look(inner);
    return error;
  } catch (problem) {
    return hasErrorId(problem, "machine-failed") ? problem : error;
  }
}

interface Watch {
  readonly creation: BringUpRequest["creation"];
  readonly arrivals: Arrivals;
  /** Called once for each machine, when it has its address. */
  readonly onUp: (node: NodeRecord) => void;
  /** The signal of the creation. */
  readonly signal: AbortSignal;
}

async function untilAllLetUsIn(
  { creation, arrivals, onUp, signal: outer }: Watch,
  { clock, progress }: Runtime,
  signal: AbortSignal,
): Promise<ClusterRecord> {
  const { lookEveryMs } = creation;
  let latest: ClusterRecord | undefined;
  let quickLooks = 0;
  const look = async (inner: AbortSignal): Promise<ClusterRecord | undefined> => {
    // The last login doesn't change what the machines look like.
    if (arrivals.areComplete && latest !== undefined) return latest;
    if (arrivals.hasJustLaunched()) quickLooks = 0;
    latest = await creation.look(inner);
    for (const node of arrivals.newlyUp(latest.nodes)) onUp(node);
    return arrivals.areComplete ? latest : undefined;
  };
  const pauseMs = (): number => {
    quickLooks += 1;
    // Once all have their addresses, polling can only reveal that a machine has ended.
    return arrivals.areAllUp ? lookEveryMs : Math.min(firstPauseMs * 1.25 ** (quickLooks - 1), lookEveryMs);
  };
  const waitingFor = (): string => arrivals.waitingText(latest?.nodes ?? []);
  const shows = { progress, waitingFor };
  const rule = { clock, pauseMs, shows, wakeUp: () => arrivals.nextNews() };
  return await whileWaitingFor(waitingFor, async () => poll(look, rule, signal), outer);
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
    const found = nodes.filter((node) => node.state === "running" && hasAddress(node) && !this.#up.has(node.id));
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
    const [addressed, bare] = [unmet.filter(hasAddress), unmet.filter((node) => !hasAddress(node))];
    const pending = this.#count - this.#loggedIn.size - unmet.length;
    const parts = [
      ...(pending > 0 ? [`${pending} of ${this.#count} machines to start`] : []),
      ...(bare.length > 0 ? [`${someOf(bare.map(nodeReference))} to get a public address`] : []),
      ...(addressed.length > 0 ? [`${someOf(addressed.map(nodeReference))} to accept SSH logins`] : []),
    ];
    return parts.join(", ");
  }
}

const hasAddress = ({ ssh }: NodeRecord): boolean => ssh.host !== "";

function someOf(names: readonly string[]): string {
  const shown = names.toSorted().slice(0, 3).join(", ");
  return names.length > 3 ? `${shown} and ${names.length - 3} more` : shown;
}
