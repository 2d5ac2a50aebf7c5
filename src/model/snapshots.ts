import type { ClusterName, ClusterRecord } from "./cluster-record.ts";

/** Saves clusters under names and brings them back. Only some backends can; see `Backend.snapshots`. */
export interface Snapshots {
  /** Oldest first. */
  list(cluster: ClusterName, signal: AbortSignal): Promise<readonly SnapshotRecord[]>;
  /**
   * Saves all nodes as they are at one moment, during which they pause. Leaves nothing behind if it fails. Throws
   * `snapshot-exists`, and `machine-failed` if a node does not run.
   */
  create(cluster: ClusterRecord, name: string, signal: AbortSignal): Promise<void>;
  /**
   * Puts all nodes back. Checks the snapshot before it touches anything: throws `snapshot-not-found`,
   * `snapshot-unusable`. If it is cut short, another restore repairs the cluster.
   */
  restore(cluster: ClusterRecord, name: string, signal: AbortSignal): Promise<void>;
  /** Also deletes an incomplete snapshot. Throws `snapshot-not-found`. */
  delete(cluster: ClusterName, name: string, signal: AbortSignal): Promise<void>;
  /** Whether restored nodes continue where they were. Otherwise they boot from their disks. */
  readonly holdsMemory: boolean;
}

export interface SnapshotRecord {
  readonly name: string;
  readonly createdAt: Date | undefined;
  /** The disk space that only this snapshot uses. */
  readonly sizeBytes: number;
  /** False for what an interrupted `create` or `delete` left. */
  readonly isComplete: boolean;
}

/** What is wrong with a snapshot's name as one sentence, or `undefined`. */
export const snapshotNameProblem = (given: string): string | undefined =>
  parseSnapshotName(given) === undefined
    ? "a snapshot's name has 1 to 63 lower-case letters, digits, _, . and -, and begins with a letter or digit"
    : undefined;

export function parseSnapshotName(found: unknown): string | undefined {
  return typeof found === "string" && /^[a-z0-9][a-z0-9_.-]{0,62}$/.test(found) ? found : undefined;
}
