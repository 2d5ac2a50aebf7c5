import { ClusterError } from "../../errors.ts";
import type { ConnectionPool } from "../../ssh/connection/pool.ts";

/** Long enough for the next command of a test, short enough for a program that is at its end. */
const idleMs = 2_000;

/**
 * The way into a cluster's nodes for the holder of a Cluster. It is open while it is used and a moment longer, so that commands in a row share
 * their connections, and a program that has nothing more to do ends by itself.
 */
export class SharedConnections implements AsyncDisposable {
  readonly #open: () => ConnectionPool;
  readonly #state: SharingState = { pool: undefined, users: 0, timer: undefined, isOver: false };

  constructor(open: () => ConnectionPool) {
    this.#open = open;
  }

  /** Fails as `cluster-not-found` after the disposal. */
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
      // What connections that nobody uses say when they are closed is of no interest.
      this.#close().catch(() => {});
    }, idleMs);
  }

  async #close(): Promise<void> {
    const { pool } = this.#state;
    this.#state.pool = undefined;
    await pool?.[Symbol.asyncDispose]();
  }

  /** Work that is under way fails as `connection-failed`. */
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
