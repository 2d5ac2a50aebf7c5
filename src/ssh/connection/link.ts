import type { Client } from "ssh2";
import type { Clock } from "../../system/clock.ts";
import type { Progress } from "../../system/progress.ts";
import type { Connection } from "./connection.ts";
import type { Target } from "./connection-errors.ts";
import type { Turns } from "../turns.ts";

/** An open ssh2 client with what running commands over it needs. */
export interface Link {
  readonly client: Client;
  readonly target: Target;
  readonly clock: Clock;
  readonly progress: Progress;
  /** Aborted, with the ClusterError that says why, as soon as the connection is gone. */
  readonly lost: AbortSignal;
  /**
   * sshd allows ten sessions per connection (MaxSessions), and frees one only a moment after its command has ended. So half of them are for
   * commands, and some of the rest for ending commands that were given up.
   */
  readonly commandTurns: Turns;
  readonly endingTurns: Turns;
  /** Opens a second connection to the same node: this one may have no session left, as with `MaxSessions 1`. */
  readonly openAnother: (signal: AbortSignal) => Promise<Connection>;
}
