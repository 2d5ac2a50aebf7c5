import { ClusterError } from "../../errors.ts";
import type { ConnectionPool } from "../../ssh/connection/connection-pool.ts";

/** Long enough for the next command of a test, and short enough for a program that is about to end. */
const idleMs = 2_000;

/**
 * The connections to a cluster's nodes, for the holder of a Cluster. They stay open while in use and a moment longer, so that consecutive commands
 * share them and a program that has nothing left to do ends by itself.
 */
export class SharedConnections implements AsyncDisposable {
  readonly #open: () => ConnectionPool;
  readonly #state: SharingState = { pool: undefined, users: 0, timer: undefined, isOver: false };

  constructor(open: () => ConnectionPool) {
    this.#open = open;
  }

  /** Fails as `cluster-not-found` after disposal. */
  async use<Result>(work: (connections: ConnectionPool) => Promise<Result>): Promise<Result> {
    if (this.#state.isOver) throw new ClusterError("cluster-not-found", "The cluster has been destroyed.");
    clearTimeout(this.#state.timer);
    this.#state.users += 1;
    this.#state.pool ??= this.#open();
    try {
      return await work(this.#state.pool);
    } finally {
      this.#state.users -= 1;
      if (this.#state.users === 0 && !this.#state.isOver) this.#closeLater();
    }
  }

  #closeLater(): void {
    this.#state.timer = setTimeout(() => {
      // Nobody uses these connections any more, so errors while closing them don't matter.
      this.#close().catch(() => {});
    }, idleMs);
  }

  async #close(): Promise<void> {
    const { pool } = this.#state;
    this.#state.pool = undefined;
    await pool?.[Symbol.asyncDispose]();
  }

  /** Ends all connections, because their nodes are replaced. The next use opens new ones. Work in progress fails as `connection-failed`. */
  async reset(): Promise<void> {
    clearTimeout(this.#state.timer);
    await this.#close();
  }

  /** Work in progress fails as `connection-failed`. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#state.isOver = true;
    clearTimeout(this.#state.timer);
    await this.#close();
  }
}

interface SharingState {
  pool: ConnectionPool | undefined;
  users: number;
  timer: ReturnType<typeof setTimeout> | undefined;
  isOver: boolean;
}
