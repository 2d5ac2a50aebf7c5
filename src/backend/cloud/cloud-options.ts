/** A general-purpose "large" type. */
export const defaultInstanceType = "m5.large";

/** Options that only cloud clusters have. The command line checks them (tagProblem, cidrProblem). */
export interface CloudOptions {
  readonly instanceType: string;
  readonly customTags: readonly CustomTag[];
  /** Address ranges that may reach the nodes. Empty: the address from which this machine is seen. */
  readonly adminCidrs: readonly string[];
  /** Absent: a subnet of the default network. */
  readonly subnetId?: string;
  /** The user's own image, with the user for SSH logins. Absent: the newest image of the distribution. */
  readonly image?: { readonly id: string; readonly user: string };
}

export interface CustomTag {
  readonly key: string;
  readonly value: string;
}
