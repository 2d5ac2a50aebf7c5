import type { DescribeImagesCommandInput, Image } from "@aws-sdk/client-ec2";
import { ClusterError } from "../../errors.ts";
import type { CloudApi } from "./api.ts";
import { collectPages } from "./pages.ts";

/** Where a distribution's images come from. Only these owners, so that nobody's look-alike image is launched. */
interface ImageSource {
  readonly owner: string;
  readonly names: string;
  readonly user: string;
  /** The version of the control groups that it boots with. */
  readonly cgroupVersion: 1 | 2;
}

const redHat = "309956199498";
const rocky = "792107900819";
const almaLinux = "764336703387";
const debian = "136693071363";
const canonical = "099720109477";
const amazon = "137112412989";

const sources: Readonly<Record<string, ImageSource>> = {
  "centos-7": { owner: "125523088429", names: "CentOS Linux 7 x86_64*", user: "centos", cgroupVersion: 1 },
  "rhel-7": { owner: redHat, names: "RHEL-7.9_HVM-*", user: "ec2-user", cgroupVersion: 1 },
  "rhel-8": { owner: redHat, names: "RHEL-8*_HVM-*", user: "ec2-user", cgroupVersion: 1 },
  "rhel-9": { owner: redHat, names: "RHEL-9*_HVM-*", user: "ec2-user", cgroupVersion: 2 },
  "rocky-8": { owner: rocky, names: "Rocky-8-EC2-Base-*.x86_64", user: "rocky", cgroupVersion: 1 },
  "rocky-9": { owner: rocky, names: "Rocky-9-EC2-Base-*.x86_64", user: "rocky", cgroupVersion: 2 },
  "almalinux-8": { owner: almaLinux, names: "AlmaLinux OS 8*x86_64", user: "ec2-user", cgroupVersion: 1 },
  "almalinux-9": { owner: almaLinux, names: "AlmaLinux OS 9*x86_64", user: "ec2-user", cgroupVersion: 2 },
  "debian-11": { owner: debian, names: "debian-11-amd64-*", user: "admin", cgroupVersion: 2 },
  "debian-12": { owner: debian, names: "debian-12-amd64-*", user: "admin", cgroupVersion: 2 },
  "debian-13": { owner: debian, names: "debian-13-amd64-*", user: "admin", cgroupVersion: 2 },
  "ubuntu-20": {
    owner: canonical,
    names: "ubuntu/images/hvm-ssd*/ubuntu-*-20.04-amd64-server-*",
    user: "ubuntu",
    cgroupVersion: 1,
  },
  "ubuntu-22": {
    owner: canonical,
    names: "ubuntu/images/hvm-ssd*/ubuntu-*-22.04-amd64-server-*",
    user: "ubuntu",
    cgroupVersion: 2,
  },
  "ubuntu-24": {
    owner: canonical,
    names: "ubuntu/images/hvm-ssd*/ubuntu-*-24.04-amd64-server-*",
    user: "ubuntu",
    cgroupVersion: 2,
  },
  "amazon-2": { owner: amazon, names: "amzn2-ami-kernel-5.10-hvm-*-x86_64-gp2", user: "ec2-user", cgroupVersion: 1 },
  "amazon-2023": { owner: amazon, names: "al2023-ami-2023.*-x86_64", user: "ec2-user", cgroupVersion: 2 },
};

/** Values of `--linux-distribution`. */
export const distributions: readonly string[] = Object.keys(sources);
export const defaultDistribution = "centos-7";
export const cgroupVersionOf = (distribution: string): 1 | 2 | undefined => sources[distribution]?.cgroupVersion;
export const cgroups1Distributions: readonly string[] = distributions.filter((name) => cgroupVersionOf(name) === 1);

export interface LaunchImage {
  readonly id: string;
  readonly name: string;
  readonly user: string;
  /** The root volume's device name, such as `/dev/xvda`, and its least size in GiB. */
  readonly rootDevice: string;
  readonly leastGigabytes: number;
}

/** The newest image of the distribution, or the very image asked for. Throws `image-not-found`, or `bad-usage` for an unknown distribution. */
export async function findImage(
  api: CloudApi,
  distribution: string,
  chosen: { readonly id: string; readonly user: string } | undefined,
  signal: AbortSignal,
): Promise<LaunchImage> {
  const query =
    chosen === undefined ? queryOf(sourceOf(distribution)) : { ImageIds: [chosen.id], IncludeDeprecated: true };
  const images = await collectPages(async (position) => {
    const page = await api.call("DescribeImages", { ...query, ...position }, signal);
    return { items: page.Images, next: page.NextToken };
  });
  const newest = images.toSorted((a, b) => (b.CreationDate ?? "").localeCompare(a.CreationDate ?? ""))[0];
  if (newest?.ImageId === undefined) throw imageNotFound(api.region, distribution, chosen?.id);
  return launchImage(newest, chosen?.user ?? sourceOf(distribution).user);
}

function sourceOf(distribution: string): ImageSource {
  const source = sources[distribution];
  if (source !== undefined) return source;
  throw new ClusterError("bad-usage", `No images are known for the distribution "${distribution}".`, {
    hint: `Known: ${distributions.join(", ")}. Any other image: --image with --ssh-user.`,
    facts: { distribution, known: distributions },
  });
}

function queryOf(source: ImageSource): DescribeImagesCommandInput {
  const filters = {
    name: source.names,
    architecture: "x86_64",
    "root-device-type": "ebs",
    "virtualization-type": "hvm",
    state: "available",
  };
  return {
    Owners: [source.owner],
    // CentOS 7's images are deprecated, and can be launched all the same.
    IncludeDeprecated: true,
    Filters: Object.entries(filters).map(([Name, value]) => ({ Name, Values: [value] })),
  };
}

function launchImage(image: Image, user: string): LaunchImage {
  const rootDevice = image.RootDeviceName ?? "/dev/sda1";
  const root = image.BlockDeviceMappings?.find((mapping) => mapping.DeviceName === rootDevice);
  return {
    id: image.ImageId ?? "",
    name: image.Name ?? image.ImageId ?? "",
    user,
    rootDevice,
    leastGigabytes: root?.Ebs?.VolumeSize ?? 0,
  };
}

function imageNotFound(region: string, distribution: string, id: string | undefined): ClusterError {
  const source = sources[distribution];
  const what = id ?? `of ${distribution} ("${source?.names}", owner ${source?.owner})`;
  return new ClusterError("image-not-found", `There is no image ${what} in region ${region}.`, {
    hint: "Choose another --linux-distribution or --cloud-region, or name an image with --image and --ssh-user.",
    facts: {
      region,
      distribution,
      ...(id !== undefined && { image: id }),
      pattern: source?.names,
      owner: source?.owner,
    },
  });
}
