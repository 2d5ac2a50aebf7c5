import type { SnapshotOrigin } from "../../shared/describe-copy.ts";
import type { ClusterFacts, MachineSettings, NodeFacts } from "../cluster-facts.ts";
import type { Accelerator } from "../options.ts";

/**
 * Where a copy's machines come from: a snapshot on this computer, or a file. It has been checked,
 * and nothing has been created.
 */
export interface CopyOrigin {
  readonly facts: Pick<
    ClusterFacts,
    "variant" | "distribution" | "counts" | "webUi" | "platform" | "expiresAt" | "base"
  >;
  /** In the order in which they were launched. */
  readonly nodes: readonly Omit<NodeFacts, "id" | "ports">[];
  readonly machines: MachineSettings;
  /**
   * Why the nodes boot from their disks instead of continuing from memory, as the end of a
   * sentence. Undefined: they continue.
   */
  readonly whyBoot: string | undefined;
  /** Chooses an accelerator for nodes that boot; absent: they can only continue. */
  readonly bootAccelerator?: () => Accelerator;
  /** This computer's. */
  readonly qemuVersion: string;
  /** For the summary, in words and as data. */
  readonly title: string;
  readonly summary: SnapshotOrigin;
  /** Gets the saved machines for the new cluster in this folder. Disposing of them lets go of them. */
  open(directory: string, signal: AbortSignal): Promise<OpenOrigin>;
}

export interface OpenOrigin extends AsyncDisposable {
  /** A cluster's folder, with its machines' firmware and seeds. */
  readonly directory: string;
  readonly folder: string;
  /** Whether the disks there are for this copy alone, so that they are moved. */
  readonly movesDisks: boolean;
  readonly privateKey: string;
  /** The host keys that the saved machines present, in the order of the nodes. */
  readonly hostKeys: readonly Buffer[];
}
