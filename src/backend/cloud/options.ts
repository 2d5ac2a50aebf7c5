import { optionName } from "../../references.ts";
import { distributionOption, readOptions, type SchemaValues } from "../../model/option-schema.ts";
import { parseRegion, parseUserName } from "../../model/parse-values.ts";
import { matching, refined, string } from "../../model/reader.ts";
import {
  anyText,
  listOf,
  mappingOf,
  objectWith,
  optional,
  readArguments,
  required,
  type Shape,
} from "../../model/read-arguments.ts";
import type { Checked } from "../../model/checked.ts";
import { admissionProblem } from "./admin-cidrs.ts";
import {
  chooseDistribution,
  defaultDistribution,
  folderDistributionText,
  distributions,
  usualDistribution,
  selinuxProblem,
} from "./launch/distributions.ts";
import { type CustomTag, tagNames } from "./tags.ts";

/** A general-purpose "large" type. */
export const defaultInstanceType = "m5.large";

/** Options that only cloud clusters have. The command line checks them (tagProblem, admissionProblem). */
export interface CloudOptions {
  readonly instanceType: string;
  readonly customTags: readonly CustomTag[];
  /** Address ranges that may reach the nodes. Empty: the address from which this machine is seen. */
  readonly adminCidrs: readonly string[];
  /** Absent: a subnet of the default network. */
  readonly subnetId?: string | undefined;
  /** The user's own image, with the user for SSH logins. Absent: the newest image of the distribution. */
  readonly image?: { readonly id: string; readonly user: string };
}

export const cloudSchema = {
  region: {
    isScope: true,
    flag: "--cloud-region",
    summary: "The cloud region",
    default: "us-west-2",
    read: parseRegion,
    what: "a region such as us-west-2",
  },
  customTags: {
    flag: "--custom-tag",
    placeholder: "<TAG_KEY>:<TAG_VALUE>",
    summary: "Tag for the instances and volumes",
    repeatable: true,
    read: refined(string, readTag),
    what: "of the form <TAG_KEY>:<TAG_VALUE>",
  },
  instanceType: {
    summary: "Instance type of the nodes",
    default: defaultInstanceType,
    read: matching(/^[a-z0-9-]+\.[a-z0-9-]+$/),
    what: "an instance type such as m5.large",
  },
  adminCidrs: {
    flag: "--admin-cidr",
    summary: "Address range that is allowed to reach the nodes over SSH and to open the web UI",
    defaultText: "this computer's public address",
    repeatable: true,
    read: string,
    what: "a text",
  },
  subnetId: {
    flag: "--subnet",
    summary: "Subnet for the nodes",
    defaultText: "a subnet of the default network",
    read: matching(/^subnet-[0-9a-f]{8,17}$/),
    what: "a subnet id such as subnet-0123456789abcdef0",
  },
  image: {
    summary: `Your own image for the nodes; requires ${optionName("sshUser")}`,
    read: matching(/^ami-[0-9a-f]{8,17}$/),
    what: "an image id such as ami-0123456789abcdef0",
  },
  sshUser: {
    summary: `User for SSH logins to nodes that use ${optionName("image")}`,
    read: parseUserName,
    what: "a user name such as ec2-user",
  },
  linuxDistribution: {
    ...distributionOption(distributions, defaultDistribution, usualDistribution, selinuxProblem),
    summary: `The operating system of the nodes; ${folderDistributionText}`,
  },
} as const;

function readTag(given: string): CustomTag | undefined {
  const colon = given.indexOf(":");
  return colon < 1 ? undefined : { key: given.slice(0, colon), value: given.slice(colon + 1) };
}

/** Checks combinations of values and address ranges. */
export function parseCloudOptions(
  values: Partial<SchemaValues<typeof cloudSchema>>,
): Checked<CloudOptions> {
  const {
    instanceType = defaultInstanceType,
    adminCidrs = [],
    customTags = [],
    subnetId,
    image,
    sshUser,
  } = values;
  const ranges = adminCidrs.flatMap((range) => admissionProblem(range) ?? []);
  const tags = customTags.flatMap(
    ({ key, value }, index) => tagProblem(key, value, customTags.slice(0, index)) ?? [],
  );
  const isHalf = (image === undefined) !== (sshUser === undefined);
  const problems = [
    ...ranges.map((problem) => `${optionName("adminCidrs")}: ${problem}`),
    ...tags.map((problem) => `${optionName("customTags")}: ${problem}`),
    ...(isHalf
      ? [`${optionName("image")} and ${optionName("sshUser")}: pass both or neither`]
      : []),
  ];
  if (problems.length > 0) return { problems };
  const ownImage = image !== undefined &&
    sshUser !== undefined && { image: { id: image, user: sshUser } };
  return {
    value: {
      instanceType,
      customTags,
      adminCidrs,
      subnetId,
      ...ownImage,
    },
  };
}

/** EC2 allows 50 tags per resource. Some of them are ours, and `Name` is added to every resource. */
const limit = 50 - Object.keys(tagNames).length - 1;
const reserved = ["aws:", "cluster-e2e:"] as const;

/**
 * Returns what is wrong with one more custom tag beside `others`, or `undefined`. Source:
 * https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Tags.html#tag-restrictions
 */
export function tagProblem(
  key: string,
  value: string,
  others: readonly CustomTag[],
): string | undefined {
  // A key ends at the first colon, so this looks for a reserved prefix in the whole text.
  const prefix = reserved.find((candidate) =>
    `${key}:${value}`.toLowerCase().startsWith(candidate),
  );
  if (key === "") return "a tag needs a key: <TAG_KEY>:<TAG_VALUE>";
  if (prefix !== undefined) return `tag "${key}:${value}" begins with the reserved "${prefix}"`;
  if (characters(key) > 128) return `tag key "${key.slice(0, 20)}…" is longer than 128 characters`;
  if (characters(value) > 256) return `the value of tag "${key}" is longer than 256 characters`;
  if (/\p{Cc}/u.test(key + value)) return `tag "${key}" contains a control character`;
  if (others.some((tag) => tag.key === key)) return `tag "${key}" is set twice`;
  if (others.length >= limit) return `more than ${limit} custom tags`;
  return undefined;
}

const characters = (text: string): number => Array.from(text).length;

/** Options for the clusters of the library's CloudBackend. */
export interface CloudBackendOptions {
  /** Such as `us-west-2`. */
  readonly region: string;
  /** The operating system of the nodes, such as `debian-12`; default: `centos-7`, or `debian-12` for folders. */
  readonly linuxDistribution?: string;
  /** Default: `m5.large`. */
  readonly instanceType?: string;
  /** Tags of instances and volumes: values by key. */
  readonly customTags?: Readonly<Record<string, string>>;
  /**
   * Address ranges, such as `192.0.2.0/24`, that may reach the nodes over SSH and the web UI;
   * default: this computer's public address.
   */
  readonly adminCidrs?: readonly string[];
  /** Such as `subnet-0123456789abcdef0`; default: a subnet of the default network. */
  readonly subnetId?: string;
  /** An image of your own instead of the distribution's newest, with the user for SSH logins. */
  readonly image?: { readonly id: string; readonly user: string };
}

const shape: Shape<CloudBackendOptions> = {
  region: required(anyText),
  linuxDistribution: optional(anyText),
  instanceType: optional(anyText),
  customTags: optional(mappingOf(anyText)),
  adminCidrs: optional(listOf(anyText)),
  subnetId: optional(anyText),
  image: optional(objectWith({ id: required(anyText), user: required(anyText) })),
};

/** Reads the options into the form that a creation needs. Throws `bad-usage` with every problem found. */
export function readCloudOptions(given: CloudBackendOptions) {
  const { image, customTags: tags = {}, ...others } = readArguments(given, shape);
  const texts = {
    ...others,
    image: image?.id,
    sshUser: image?.user,
  };
  // In the library, a key may contain a colon. In text, it would look like the colon before the value.
  const customTags = Object.entries(tags).map(([key, value]) => ({ key, value }));
  const { values, options } = readOptions(cloudSchema, texts, (read) =>
    parseCloudOptions({ ...read, customTags }),
  );
  // The library creates machines before it knows the platform.
  return {
    region: values.region,
    distribution: chooseDistribution(values.linuxDistribution, undefined),
    options,
  };
}
