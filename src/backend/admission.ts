import type { ClusterName } from "../model/cluster-record.ts";

/** Decides which addresses can reach the nodes of existing clusters. */
export interface Admission {
  list(cluster: ClusterName, signal: AbortSignal): Promise<readonly AdmittedRange[]>;
  /** Returns the admitted range. Safe to repeat. Throws `bad-usage` if the given text is not a range. */
  admit(cluster: ClusterName, request: AdmissionRequest, signal: AbortSignal): Promise<string>;
  /** Returns the removed range. Throws `bad-usage` if it isn't admitted. */
  remove(cluster: ClusterName, range: string, signal: AbortSignal): Promise<string>;
}

export interface AdmissionRequest {
  /** An address or a range such as `192.0.2.0/24`; undefined: the address from which this machine is seen. */
  readonly range: string | undefined;
  /** TCP ports to open besides 22, if no range is admitted that would show which. */
  readonly openPorts: readonly number[];
}

export interface AdmittedRange {
  readonly range: string;
  /** Such as `22`, `8000-8100` or `all`. */
  readonly ports: readonly string[];
}
