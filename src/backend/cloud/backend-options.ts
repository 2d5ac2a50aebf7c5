import { distributionOption, readOptions } from "../../model/option-schema.ts";
import {
  type Shape,
  anyText,
  listOf,
  mappingOf,
  objectWith,
  optional,
  readArguments,
  required,
} from "../../model/read-arguments.ts";
import { cloudProblems } from "./cloud-problems.ts";
import { defaultDistribution, distributions } from "./launch/distributions.ts";
import { type CloudOptions, cloudOptions, cloudPlaceSchema, cloudSchema } from "./options.ts";

/** Options for the clusters of the library's CloudBackend. */
export interface CloudBackendOptions {
  /** Such as `us-west-2`. */
  readonly region: string;
  /** The operating system of the nodes, such as `debian-12`; default: `centos-7`, as for `cluster-cloud`. */
  readonly linuxDistribution?: string;
  /** Default: `m5.large`. */
  readonly instanceType?: string;
  /** Tags of instances and volumes: values by key. */
  readonly customTags?: Readonly<Record<string, string>>;
  /**
   * Address ranges that may reach the nodes over SSH and the web UI, such as `192.0.2.0/24`; default: the address from which this machine is seen.
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
export function readCloudOptions(given: CloudBackendOptions): {
  readonly region: string;
  readonly distribution: string;
  readonly options: CloudOptions;
} {
  const { image, customTags: tags = {}, ...others } = readArguments(given, shape);
  const texts = {
    ...others,
    image: image?.id,
    sshUser: image?.user,
  };
  // In the library, a key may contain a colon. In text, it would look like the colon before the value.
  const customTags = Object.entries(tags).map(([key, value]) => ({ key, value }));
  const values = readOptions(librarySchema, texts, (read) => cloudProblems({ ...read, customTags }));
  const { region, linuxDistribution } = values;
  return { region, distribution: linuxDistribution, options: cloudOptions({ ...values, customTags }) };
}

const librarySchema = {
  ...cloudPlaceSchema,
  ...cloudSchema,
  linuxDistribution: distributionOption(distributions, defaultDistribution),
} as const;
