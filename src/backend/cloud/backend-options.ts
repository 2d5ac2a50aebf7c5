import { ClusterError } from "../../errors.ts";
import { parseRegion, parseUserName } from "../../model/parse-values.ts";
import { cidrProblem } from "./launch/admin-cidrs.ts";
import type { CloudOptions } from "./cloud-options.ts";
import { defaultInstanceType } from "./cloud-options.ts";
import { tagProblem } from "./launch/tag-problem.ts";
import { defaultDistribution, distributions } from "./launch/distributions.ts";

/** What clusters of the library's CloudBackend are made of. */
export interface CloudBackendOptions {
  /** Such as `us-west-2`. */
  readonly region: string;
  /** The operating system of the nodes, such as `debian-12`; default: `centos-7`, as for `cluster-cloud`. */
  readonly linuxDistribution?: string;
  /** Default: `m5.large`. */
  readonly instanceType?: string;
  /** Tags of instances and volumes: values by key. */
  readonly customTags?: Readonly<Record<string, string>>;
  /** Address ranges that may reach the nodes over SSH and the web UI, such as `192.0.2.0/24`; default: the address this machine is seen from. */
  readonly adminCidrs?: readonly string[];
  /** Such as `subnet-0123456789abcdef0`; default: one of the default network. */
  readonly subnetId?: string;
  /** An image of your own instead of the distribution's newest, with the user that it lets in over SSH. */
  readonly image?: { readonly id: string; readonly user: string };
}

/** The options as a creation wants them; `bad-usage` with all that is wrong with them. */
export function readCloudOptions(options: CloudBackendOptions): {
  readonly region: string;
  readonly distribution: string;
  readonly options: CloudOptions;
} {
  const { region, linuxDistribution = defaultDistribution, adminCidrs = [], subnetId, image } = options;
  const customTags = Object.entries(options.customTags ?? {}).map(([key, value]) => ({ key, value }));
  const problems = [
    parseRegion(region) === undefined ? `"${region}" is no region, such as us-west-2` : undefined,
    distributions.includes(linuxDistribution) ? undefined : unknownDistribution(linuxDistribution),
    image === undefined || parseUserName(image.user) !== undefined
      ? undefined
      : `"${image.user}" is no user's name, such as ec2-user`,
    ...adminCidrs.map(cidrProblem),
    ...customTags.map(({ key, value }, index) => tagProblem(key, value, customTags.slice(0, index))),
  ].filter((problem) => problem !== undefined);
  if (problems.length > 0) throw new ClusterError("bad-usage", problems.join("; "), { facts: { problems } });
  return {
    region,
    distribution: linuxDistribution,
    options: {
      customTags,
      adminCidrs,
      instanceType: options.instanceType ?? defaultInstanceType,
      ...(subnetId !== undefined && { subnetId }),
      ...(image !== undefined && { image }),
    },
  };
}

const unknownDistribution = (given: string): string =>
  `No images are known for the distribution "${given}"; known: ${distributions.join(", ")}`;
