/** A general-purpose "large" one. */
export const defaultInstanceType = "m5.large";

/** What only a cloud cluster is asked for; checked at the command line (tagProblem, cidrProblem). */
export interface CloudOptions {
  readonly instanceType: string;
  readonly customTags: readonly CustomTag[];
  /** Who may reach the nodes. Empty: the address that this machine is seen from. */
  readonly adminCidrs: readonly string[];
  /** Absent: one of the default network. */
  readonly subnetId?: string;
  /** An image of one's own, with the user it lets in. Absent: the newest of the distribution. */
  readonly image?: { readonly id: string; readonly user: string };
}

export interface CustomTag {
  readonly key: string;
  readonly value: string;
}
