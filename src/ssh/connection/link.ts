import type { Client } from "ssh2";
import type { Clock, Progress } from "../../system/runtime.ts";
import type { Connection } from "./connection.ts";
import type { Target } from "./connection-errors.ts";
import type { Semaphore } from "../../system/concurrency.ts";

/** An open ssh2 client, with everything needed to run commands over it. */
export interface Link {
  readonly client: Client;
  readonly target: Target;
  readonly clock: Clock;
  readonly progress: Progress;
  /** Aborts as soon as the connection is lost, with the ClusterError that says why. */
  readonly lost: AbortSignal;
  /**
   * sshd allows ten sessions per connection (MaxSessions) and frees a session only a moment after its command has ended. So commands may use half of
   * them, and some of the others serve to end commands that were given up.
   */
  readonly commandSlots: Semaphore;
  readonly endingSlots: Semaphore;
  /** Opens a second connection to the same node, because this one may have no session left, as with `MaxSessions 1`. */
  readonly openAnother: (signal: AbortSignal) => Promise<Connection>;
}
