import type { AdmittedRange } from "../backend/admission.ts";
import type { ChaosStep } from "../cluster/faults/chaos-plan.ts";
import type { Fault } from "../cluster/faults/faults.ts";
import type { MasterSync } from "../cluster/sync-checkout.ts";
import type { Trouble } from "../cluster/watch/start-watch.ts";
import type { ErrorId } from "../errors.ts";
import type { CheckResult } from "../model/check.ts";
import type { ClusterRecord, NodeRecord } from "../model/cluster-record.ts";
import type { SnapshotRecord, TemplateRecord } from "../model/snapshot.ts";
import type { ListedExample } from "../platform/examples/examples.ts";
import type { ClusterView, NodeView } from "./cluster-view.ts";
import type { InspectedCluster } from "./inspect-view.ts";

interface CopiedToNode {
  readonly reference: string;
  readonly files: number;
  readonly bytes: number;
}

export interface CreatedView {
  readonly cluster: ClusterView & { readonly nodes: readonly NodeView[] };
  readonly phases: readonly { readonly title: string; readonly seconds: number }[];
  /** Absent without `--wait`. */
  readonly ready?: boolean;
  /** The command line that users are likely to want now. */
  readonly next: string;
}

export interface CheckView extends Pick<CheckResult, "name" | "status" | "message"> {
  /** How to fix the problem. */
  readonly remedy?: string;
  /** With `-v`, as are the details. */
  readonly milliseconds?: number;
  readonly details?: readonly string[];
}

export interface OutcomeView {
  readonly reference: string;
  readonly status: number;
  /** Of very long output, the end. */
  readonly stdout: string;
  readonly stderr: string;
  /** Why the command did not run, or did not end by itself. */
  readonly error?: { readonly id: ErrorId; readonly message: string; readonly hint?: string };
}

export type TroubleView = Pick<Trouble, "node" | "at" | "kind" | "text">;

interface NodeStates {
  readonly cluster: Pick<ClusterRecord, "id" | "state">;
  readonly nodes: readonly { readonly reference: string; readonly state: NodeRecord["state"] }[];
}

/**
 * What `--output json` prints, by command, besides `schemaVersion` and `error`. Dates become ISO
 * texts, and undefined fields are left out. These types are the only declaration of the fields:
 * `scripts/json-schema.ts` writes `results.schema.json` from them.
 */
export interface JsonResults<Plan = Readonly<Record<string, unknown>>> {
  readonly admit:
    | { readonly ranges: readonly AdmittedRange[] }
    | { readonly admitted: string }
    | { readonly removed: string };
  readonly cp: { readonly nodes: readonly CopiedToNode[] };
  readonly create: CreatedView | { readonly plan: Plan };
  readonly destroy: { readonly destroyed: readonly string[] };
  readonly doctor: { readonly checks: readonly CheckView[] };
  readonly examples:
    | { readonly examples: readonly ListedExample[] }
    | { readonly name: string; readonly folder: string };
  readonly fault:
    | { readonly faults: readonly Fault[] }
    | { readonly fault: Fault }
    | { readonly seed: number; readonly plan: readonly ChaosStep[] };
  readonly forward: { readonly host: string; readonly port: number };
  readonly import: { readonly cluster: string; readonly region: string };
  readonly inspect: { readonly cluster: InspectedCluster };
  readonly list: {
    readonly clusters: readonly ClusterView[];
    /**
     * With the option that lists all scopes: those that did not answer, by the name of their kind,
     * such as `region`, and the `reason`.
     */
    readonly unreachable?: readonly Readonly<Record<string, string>>[];
  };
  readonly logs:
    | { readonly folder: string; readonly files: readonly string[] }
    | { readonly file: string; readonly lines: number };
  readonly node: NodeStates;
  readonly pack: {
    readonly file: string;
    readonly name: string;
    readonly version: string;
    readonly sizeBytes: number;
    readonly sha256: string;
  };
  readonly run: {
    readonly nodes: readonly OutcomeView[];
    /** What went wrong on the nodes meanwhile; with --watch. */
    readonly noticed?: readonly TroubleView[];
  };
  readonly snapshot:
    | { readonly snapshots: readonly SnapshotRecord[] }
    | { readonly snapshot: string; readonly file?: string };
  readonly start: NodeStates;
  readonly stop: NodeStates;
  readonly sync: {
    /** Those of the nodes that are masters. */
    readonly masters: readonly MasterSync[];
    readonly nodes: readonly MasterSync[];
    readonly seconds: number;
  };
  readonly templates:
    | { readonly templates: readonly TemplateRecord[] }
    | { readonly removed: readonly string[] };
  readonly upgrade: {
    readonly cluster: Pick<ClusterRecord, "id">;
    readonly version: string;
    /** The nodes that were upgraded, in this order. */
    readonly upgraded: readonly string[];
    readonly seconds: number;
  };
  readonly wait: {
    readonly cluster: Pick<ClusterRecord, "id">;
    readonly ready: boolean;
    /** How long the command waited. */
    readonly seconds: number;
    /** How long ago the cluster was created. */
    readonly ageSeconds: number | undefined;
  };
}
