import type { DescribeImagesCommandInput, Image } from "@aws-sdk/client-ec2";
import { ClusterError } from "../../../errors.ts";
import { optionName } from "../../../references.ts";
import { plainLine } from "../../../system/printable.ts";
import { unknownDistribution } from "../../shared/machine-errors.ts";
import { type CloudApi, collectPages } from "../api/api.ts";
import type { ImageTraits } from "./instance-types.ts";
import { type ImageSource, distributions, partitionOf, sources } from "./distributions.ts";

export interface LaunchImage {
  readonly id: string;
  readonly name: string;
  readonly user: string;
  /** The root volume's device name, such as `/dev/xvda`, and its minimum size in GiB. */
  readonly rootDevice: string;
  readonly leastGigabytes: number;
  /** The device names of the image's further volumes. */
  readonly furtherDevices: readonly string[];
  readonly traits: ImageTraits;
  /**
   * Whether machines can be launched with version 2 of the instance metadata alone. If not, version 1 stays open until
   * the first login: cloud-init may need it to find the user data, and without user data nobody can log in.
   */
  readonly knowsMetadata2: boolean;
}

/**
 * Finds the newest image of the distribution, or the image that the user chose. Throws `image-not-found`, or
 * `bad-usage` for an unknown distribution.
 */
export async function findImage(
  api: CloudApi,
  distribution: string,
  chosen: { readonly id: string; readonly user: string } | undefined,
  signal: AbortSignal,
): Promise<LaunchImage> {
  const query =
    chosen === undefined
      ? queryOf(distribution, api.region)
      : { ImageIds: [chosen.id], IncludeDeprecated: true };
  const images = await collectPages(api, ["DescribeImages", query], ({ Images }) => Images, signal);
  const newest = images.toSorted((a, b) =>
    (b.CreationDate ?? "").localeCompare(a.CreationDate ?? ""),
  )[0];
  if (newest?.ImageId === undefined) throw imageNotFound(api.region, distribution, chosen?.id);
  // For a user's own image, rely only on what the API says about it.
  const isKnown = chosen === undefined && sourceOf(distribution).needsMetadata1 !== true;
  return launchImage(newest, chosen?.user ?? sourceOf(distribution).user, isKnown);
}

function sourceOf(distribution: string): ImageSource {
  const source = sources[distribution];
  if (source !== undefined) return source;
  const instead = `pass an image with ${optionName("image")} and ${optionName("sshUser")}`;
  throw unknownDistribution(distribution, {
    images: "No images are",
    known: distributions,
    instead,
  });
}

function queryOf(distribution: string, region: string): DescribeImagesCommandInput {
  const source = sourceOf(distribution);
  const owner = ownerIn(source, region);
  if (owner === undefined) throw ownerUnknown(distribution, region);
  const filters = {
    name: source.names,
    architecture: "x86_64",
    "root-device-type": "ebs",
    "virtualization-type": "hvm",
    state: "available",
  };
  return {
    Owners: [owner],
    // CentOS 7's images are deprecated but can still be launched.
    IncludeDeprecated: true,
    Filters: Object.entries(filters).map(([Name, value]) => ({ Name, Values: [value] })),
  };
}

function launchImage(image: Image, user: string, isKnown: boolean): LaunchImage {
  const rootDevice = image.RootDeviceName ?? "/dev/sda1";
  const root = image.BlockDeviceMappings?.find((mapping) => mapping.DeviceName === rootDevice);
  return {
    id: image.ImageId ?? "",
    name: plainLine(image.Name) || (image.ImageId ?? ""),
    user,
    rootDevice,
    leastGigabytes: root?.Ebs?.VolumeSize ?? 0,
    furtherDevices: (image.BlockDeviceMappings ?? [])
      .filter((mapping) => mapping.Ebs !== undefined && mapping.DeviceName !== rootDevice)
      .flatMap(({ DeviceName }) => DeviceName ?? []),
    traits: {
      Architecture: image.Architecture,
      VirtualizationType: image.VirtualizationType,
      RootDeviceType: image.RootDeviceType,
      BootMode: image.BootMode,
      EnaSupport: image.EnaSupport,
      TpmSupport: image.TpmSupport,
    },
    knowsMetadata2: isKnown || image.ImdsSupport === "v2.0",
  };
}

function ownerIn({ owners }: ImageSource, region: string): string | undefined {
  const partition = partitionOf(region);
  return partition && owners[partition];
}

function ownerUnknown(distribution: string, region: string): ClusterError {
  const known = distributions.filter((name) => ownerIn(sourceOf(name), region) !== undefined);
  const others =
    known.length === 0
      ? ""
      : `, or choose one of these as ${optionName("linuxDistribution")}: ${known.join(", ")}`;
  return new ClusterError(
    "image-not-found",
    `It is not known who publishes images of ${distribution} in region ${region}, where accounts are others than in most regions.`,
    {
      hint: `Pass an image with ${optionName("image")} and ${optionName("sshUser")}${others}.`,
      facts: { region, distribution, known },
    },
  );
}

function imageNotFound(region: string, distribution: string, id: string | undefined): ClusterError {
  const source = sources[distribution];
  const what =
    id ?? `of ${distribution} ("${source?.names}", owner ${source && ownerIn(source, region)})`;
  const nearest = id === undefined ? (source?.nearest ?? []) : [];
  const another =
    nearest.length === 0
      ? `another ${optionName("linuxDistribution")}`
      : optionName("linuxDistribution", nearest.join(" or "));
  return new ClusterError("image-not-found", `There is no image ${what} in region ${region}.`, {
    hint: `Choose ${another}, another ${optionName("region")}, or pass an image with ${optionName("image")} and ${optionName("sshUser")}.`,
    facts: {
      region,
      distribution,
      ...(id !== undefined && { image: id }),
      pattern: source?.names,
      owner: source && ownerIn(source, region),
    },
  });
}
