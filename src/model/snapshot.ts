export interface SnapshotRecord {
  readonly name: string;
  readonly createdAt: Date | undefined;
  /** The disk space that only this snapshot uses. */
  readonly sizeBytes: number;
  /** False if `create` or `delete` was interrupted. */
  readonly isComplete: boolean;
}

export interface SnapshotFile {
  readonly path: string;
  readonly replaces: boolean;
  /** Whether to leave out images that the other computer has. */
  readonly withoutBase: boolean;
  /** Writes the chunks to the path, encrypted; absent: the file is not encrypted. */
  readonly encrypt?:
    | ((chunks: AsyncIterable<Uint8Array>, path: string, signal: AbortSignal) => Promise<void>)
    | undefined;
}

/** A file that `save` wrote. */
export interface ClusterFileReference {
  /** `shown`: the path as messages show it. */
  readonly location: { readonly path: string; readonly shown: string } | { readonly url: string };
  /** The expected checksum in lower-case hexadecimal. A URL has one. */
  readonly sha256?: string | undefined;
  /** The name of the snapshot that the file must hold; absent: any. */
  readonly snapshot?: string;
}

export interface TemplateRecord {
  readonly name: string;
  /** The kind of machine, in a few words; undefined: the template is damaged. */
  readonly machine: string | undefined;
  readonly createdAt: Date | undefined;
  readonly sizeBytes: number;
  /** The ids of the clusters that are built on it. */
  readonly clusters: readonly string[];
  /** Why machines of this kind boot instead. */
  readonly problem: string | undefined;
}

/**
 * The beginning of a file with a cluster: a frame that zstd skips (RFC 8878, 3.1.2). It contains
 * JSON whose first field is this format.
 */
export const clusterFileStart = {
  format: "cluster-e2e-cluster",
  /** Any of 16 magic numbers begins such a frame. */
  frameMagic: 0x18_4d_2a_5e,
  /** The length of the magic number and the frame's length. */
  frameHeadBytes: 8,
} as const;
