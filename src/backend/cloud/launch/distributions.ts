/** The parts of the cloud that share no accounts, with how the names of their regions begin. */
const partitions = { "cn-": "aws-cn", "us-gov-": "aws-us-gov" } as const;

type Partition = "aws" | (typeof partitions)[keyof typeof partitions];

/** A partition that this program doesn't know has no known owners. */
export function partitionOf(region: string): Partition | undefined {
  const found = Object.entries(partitions).find(([start]) => region.startsWith(start))?.[1];
  return found ?? (/^(?:us-iso|eu-isoe|eusc-)/.test(region) ? undefined : "aws");
}

/** Where a distribution's images come from, and the known facts about them. */
export interface ImageSource {
  /**
   * The publisher's account in each partition; absent where it isn't known. Only its images are
   * launched, because anyone may publish an image under the same name.
   */
  readonly owners: { readonly aws: string } & Partial<Readonly<Record<Partition, string>>>;
  readonly names: string;
  readonly user: string;
  /** The version of the control groups that it boots with. */
  readonly cgroupVersion: 1 | 2;
  /** Its cloud-init is not known to work with version 2 of the instance metadata alone. */
  readonly needsMetadata1?: true;
  /** The most similar distributions, for regions that have no image of this one. */
  readonly nearest: readonly [string, string];
}

/**
 * The publishers of images, each with the user that their images have for logins. Sources of the
 * accounts in other partitions: https://access.redhat.com/solutions/15356,
 * https://documentation.ubuntu.com/aws/aws-how-to/instances/find-ubuntu-images,
 * https://github.com/awslabs/amazon-eks-ami (the owners of Amazon's images).
 */
const centos = { owners: { aws: "125523088429" }, user: "centos" } as const;
const redHat = {
  owners: { aws: "309956199498", "aws-us-gov": "219670896067", "aws-cn": "841258680906" },
  user: "ec2-user",
} as const;
const rocky = { owners: { aws: "792107900819" }, user: "rocky" } as const;
const almaLinux = { owners: { aws: "764336703387" }, user: "ec2-user" } as const;
const debian = { owners: { aws: "136693071363" }, user: "admin" } as const;
const canonical = {
  owners: { aws: "099720109477", "aws-us-gov": "513442679011", "aws-cn": "837727238323" },
  user: "ubuntu",
} as const;
const amazon = {
  owners: { aws: "137112412989", "aws-us-gov": "045324592363", "aws-cn": "141808717104" },
  user: "ec2-user",
} as const;

const ubuntu = (version: string): string =>
  `ubuntu/images/hvm-ssd*/ubuntu-*-${version}-amd64-server-*`;

export const sources: Readonly<Record<string, ImageSource>> = {
  // cloud-init 19.4 is the first version with any support for version 2 of the metadata, and isn't known to work.
  "centos-7": {
    ...centos,
    names: "CentOS Linux 7 x86_64*",
    cgroupVersion: 1,
    needsMetadata1: true,
    nearest: ["rocky-8", "almalinux-8"],
  },
  "rhel-7": {
    ...redHat,
    names: "RHEL-7.9_HVM-*",
    cgroupVersion: 1,
    needsMetadata1: true,
    nearest: ["rhel-8", "rocky-8"],
  },
  "rhel-8": {
    ...redHat,
    names: "RHEL-8*_HVM-*",
    cgroupVersion: 1,
    nearest: ["rocky-8", "almalinux-8"],
  },
  "rhel-9": {
    ...redHat,
    names: "RHEL-9*_HVM-*",
    cgroupVersion: 2,
    nearest: ["rocky-9", "almalinux-9"],
  },
  "rocky-8": {
    ...rocky,
    names: "Rocky-8-EC2-Base-*.x86_64",
    cgroupVersion: 1,
    nearest: ["almalinux-8", "rhel-8"],
  },
  "rocky-9": {
    ...rocky,
    names: "Rocky-9-EC2-Base-*.x86_64",
    cgroupVersion: 2,
    nearest: ["almalinux-9", "rhel-9"],
  },
  "almalinux-8": {
    ...almaLinux,
    names: "AlmaLinux OS 8*x86_64",
    cgroupVersion: 1,
    nearest: ["rocky-8", "rhel-8"],
  },
  "almalinux-9": {
    ...almaLinux,
    names: "AlmaLinux OS 9*x86_64",
    cgroupVersion: 2,
    nearest: ["rocky-9", "rhel-9"],
  },
  "debian-11": {
    ...debian,
    names: "debian-11-amd64-*",
    cgroupVersion: 2,
    nearest: ["debian-12", "ubuntu-22"],
  },
  "debian-12": {
    ...debian,
    names: "debian-12-amd64-*",
    cgroupVersion: 2,
    nearest: ["debian-13", "debian-11"],
  },
  "debian-13": {
    ...debian,
    names: "debian-13-amd64-*",
    cgroupVersion: 2,
    nearest: ["debian-12", "ubuntu-24"],
  },
  "ubuntu-20": {
    ...canonical,
    names: ubuntu("20.04"),
    cgroupVersion: 1,
    nearest: ["ubuntu-22", "debian-11"],
  },
  "ubuntu-22": {
    ...canonical,
    names: ubuntu("22.04"),
    cgroupVersion: 2,
    nearest: ["ubuntu-24", "debian-12"],
  },
  "ubuntu-24": {
    ...canonical,
    names: ubuntu("24.04"),
    cgroupVersion: 2,
    nearest: ["ubuntu-22", "debian-13"],
  },
  "amazon-2": {
    ...amazon,
    names: "amzn2-ami-kernel-5.10-hvm-*-x86_64-gp2",
    cgroupVersion: 1,
    nearest: ["amazon-2023", "rocky-8"],
  },
  "amazon-2023": {
    ...amazon,
    names: "al2023-ami-2023.*-x86_64",
    cgroupVersion: 2,
    nearest: ["rocky-9", "almalinux-9"],
  },
};

export const distributions: readonly string[] = Object.keys(sources);
/** Stands for the distribution that suits the artifact's platform, if the user hasn't named one. */
export const defaultDistribution = "by-platform";
export const usualDistribution = "centos-7";
/** The specification fixes the default for releases; this is added to what the help says about the option. */
export const folderDistributionText =
  "debian-12 by default for folders, or almalinux-9 if they name packages for dnf only";

export const chooseDistribution = (asked: string, forFolder: string | undefined): string =>
  asked === defaultDistribution ? (forFolder ?? usualDistribution) : asked;

export const cgroupVersionOf = (distribution: string): 1 | 2 | undefined =>
  sources[distribution]?.cgroupVersion;
export const cgroups1Distributions: readonly string[] = distributions.filter(
  (name) => cgroupVersionOf(name) === 1,
);

/**
 * Returns why SELinux can't be enforced on this distribution; undefined if it can, or for an own
 * image or the default.
 */
export function selinuxProblem(distribution: string): string | undefined {
  if (distribution === defaultDistribution || distribution.startsWith("image ")) return undefined;
  // SELinux is switched off on Amazon Linux 2, and a running system cannot change that mode.
  const hasSelinux = /^(?:centos|rhel|rocky|almalinux)-|^amazon-2023$/.test(distribution);
  return hasSelinux ? undefined : `${distribution} comes without SELinux`;
}
