import { ClusterError, quoted } from "../../errors.ts";
import { matching, parsed } from "../../model/option-schema.ts";
import type { SchemaValues } from "../../model/option-schema.ts";
import { parseRegion, parseUserName } from "../../model/parse-values.ts";
import { defaultInstanceType } from "./cloud-options.ts";
import type { CloudOptions, CustomTag } from "./cloud-options.ts";

/** Where to create clusters and look for them. */
export const cloudPlaceSchema = {
  region: {
    summary: "The cloud region",
    default: "us-west-2",
    read: parsed(parseRegion, "is no region, such as us-west-2"),
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
    summary: "Type of the instances",
    default: defaultInstanceType,
    read: matching(/^[a-z0-9-]+\.[a-z0-9-]+$/, "is no instance type, such as m5.large"),
  },
  adminCidrs: {
    summary: "Address range that may reach the nodes over SSH and the web UI",
    defaultText: "the address this machine is seen from",
    repeatable: true,
    read: String,
  },
  subnetId: {
    summary: "Subnet for the nodes",
    defaultText: "one of the default network",
    read: matching(/^subnet-[0-9a-f]{8,17}$/, "is no subnet id, such as subnet-0123456789abcdef0"),
  },
  image: {
    summary: "Image of your own for the nodes; needs `sshUser`",
    read: matching(/^ami-[0-9a-f]{8,17}$/, "is no image id, such as ami-0123456789abcdef0"),
  },
  sshUser: {
    summary: "The user that `image` lets in over SSH",
    read: parsed(parseUserName, "is no user's name, such as ec2-user"),
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
  if (colon < 1) throw new ClusterError("bad-usage", `${quoted(given)} is no <TAG_KEY>:<TAG_VALUE>`);
  return { key: given.slice(0, colon), value: given.slice(colon + 1) };
}
