/** The part of the contract between backends and commands that saves clusters. See contract.ts. */
import type { ClusterName, ClusterRecord } from "../model/cluster-record.ts";
import type { Creation } from "./contract.ts";

/** Saves clusters under names and brings them back. Only some backends can. */
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
  /** Plans a cluster that is made from a snapshot. Throws what `plan` does, and `snapshot-not-found`, `snapshot-unusable` and the like. */
  readonly planCopy?: (request: CopyRequest, signal: AbortSignal) => Promise<Creation>;
  /** Writes a snapshot to one file. Leaves nothing behind if it fails. Throws `snapshot-not-found`, `snapshot-unusable`, `bad-usage` and the like. */
  readonly save?: (cluster: ClusterName, name: string, file: SnapshotFile, signal: AbortSignal) => Promise<void>;
  /** Plans a cluster that is made from such a file. Throws what `plan` does, and `snapshot-unusable` and the like for a file that isn't one. */
  readonly planFileCopy?: (request: FileCopyRequest, signal: AbortSignal) => Promise<Creation>;
}

export interface SnapshotRecord {
  readonly name: string;
  readonly createdAt: Date | undefined;
  /** The disk space that only this snapshot uses. */
  readonly sizeBytes: number;
  /** False for what an interrupted `create` or `delete` left. */
  readonly isComplete: boolean;
}

/** The cluster to create from a snapshot: it has the same nodes, software and data, and continues where the snapshot was made. */
export interface CopyRequest {
  readonly clusterId: string;
  /** The cluster that has the snapshot. */
  readonly source: ClusterRecord;
  readonly snapshot: string;
}

/** The cluster to create from a file. */
export interface FileCopyRequest {
  readonly clusterId: string;
  readonly file: ClusterFileReference;
}

/** A file that `save` wrote. */
export interface ClusterFileReference {
  /** `shown`: the path as messages show it. */
  readonly location: { readonly path: string; readonly shown: string } | { readonly url: string };
  /** The expected checksum in lower-case hexadecimal. A URL has one. */
  readonly sha256?: string | undefined;
}

/** A file to write a snapshot to. */
export interface SnapshotFile {
  readonly path: string;
  /** Whether to replace an existing file. */
  readonly replaces: boolean;
  /** Whether to leave out images that the other computer has. */
  readonly withoutBase: boolean;
  /** Writes the chunks to the path, encrypted; absent: the file is not encrypted. */
  readonly encrypt?:
    | ((chunks: AsyncIterable<Uint8Array>, path: string, signal: AbortSignal) => Promise<void>)
    | undefined;
}
