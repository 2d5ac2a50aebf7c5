import { ClusterError, quoted } from "../../errors.ts";
import { type SchemaValues, matching, parsed } from "../../model/option-schema.ts";
import { parseRegion, parseUserName } from "../../model/parse-values.ts";

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

/** Where to create clusters and look for them. */
export const cloudPlaceSchema = {
  region: {
    summary: "The cloud region",
    default: "us-west-2",
    read: parsed(parseRegion, "is not a region such as us-west-2"),
  },
} as const;

/** Options that only clusters on cloud instances have. */
export const cloudSchema = {
  customTags: {
    placeholder: "<TAG_KEY>:<TAG_VALUE>",
    summary: "Tag for the instances and volumes",
    repeatable: true,
    read: readTag,
  },
  instanceType: {
    summary: "Instance type of the nodes",
    default: defaultInstanceType,
    read: matching(/^[a-z0-9-]+\.[a-z0-9-]+$/, "is not an instance type such as m5.large"),
  },
  adminCidrs: {
    summary: "Address range that is allowed to reach the nodes over SSH and to open the web UI",
    defaultText: "this machine's public address",
    repeatable: true,
    read: String,
  },
  subnetId: {
    summary: "Subnet for the nodes",
    defaultText: "a subnet of the default network",
    read: matching(/^subnet-[0-9a-f]{8,17}$/, "is not a subnet id such as subnet-0123456789abcdef0"),
  },
  image: {
    summary: "Your own image for the nodes; requires `sshUser`",
    read: matching(/^ami-[0-9a-f]{8,17}$/, "is not an image id such as ami-0123456789abcdef0"),
  },
  sshUser: {
    summary: "User for SSH logins to nodes that use `image`",
    read: parsed(parseUserName, "is not a user name such as ec2-user"),
  },
} as const;

export type CloudValues = SchemaValues<typeof cloudSchema>;

export function cloudOptions({
  instanceType,
  customTags,
  adminCidrs,
  subnetId,
  image,
  sshUser,
}: CloudValues): CloudOptions {
  return {
    instanceType,
    customTags,
    adminCidrs,
    ...(subnetId !== undefined && { subnetId }),
    ...(image !== undefined && { image: { id: image, user: sshUser ?? "" } }),
  };
}

function readTag(given: string): CustomTag {
  const colon = given.indexOf(":");
  if (colon < 1) throw new ClusterError("bad-usage", `${quoted(given)} is not of the form <TAG_KEY>:<TAG_VALUE>`);
  return { key: given.slice(0, colon), value: given.slice(colon + 1) };
}
