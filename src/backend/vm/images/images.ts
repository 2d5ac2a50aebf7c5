import { unknownDistribution } from "../../shared/machine-errors.ts";
import { optionName } from "../../../references.ts";
import type { Architecture } from "../qemu/architecture.ts";

export interface PublishedImage {
  readonly url: string;
  /** Lists the sums of all images in the same folder, including this one's. */
  readonly sumsUrl: string;
}

type Published = (architecture: Architecture) => PublishedImage;

interface Source {
  readonly image: Published;
  /** The version of the control groups that it boots with. */
  readonly cgroupVersion: 1 | 2;
}

/**
 * Cloud images with cloud-init, under their publishers' names for the newest of each release; each
 * is available for every architecture.
 */
const sources: Readonly<Record<string, Source>> = {
  "almalinux-8": { image: alma(8), cgroupVersion: 1 },
  "almalinux-9": { image: alma(9), cgroupVersion: 2 },
  "debian-11": { image: debian(11, "bullseye"), cgroupVersion: 2 },
  "debian-12": { image: debian(12, "bookworm"), cgroupVersion: 2 },
  "debian-13": { image: debian(13, "trixie"), cgroupVersion: 2 },
  "rocky-8": { image: rocky(8), cgroupVersion: 1 },
  "rocky-9": { image: rocky(9), cgroupVersion: 2 },
  "ubuntu-22": { image: ubuntu("22.04"), cgroupVersion: 2 },
  "ubuntu-24": { image: ubuntu("24.04"), cgroupVersion: 2 },
};

export const distributions: readonly string[] = Object.keys(sources);
export const cgroupVersionOf = (distribution: string): 1 | 2 | undefined =>
  sources[distribution]?.cgroupVersion;
export const cgroups1Distributions: readonly string[] = distributions.filter(
  (name) => cgroupVersionOf(name) === 1,
);
/** Stands for the distribution that suits the artifact's platform, if the user hasn't named one. */
export const defaultDistribution = "by-artifact";
const suiting = { usual: "debian-12", cgroups1: "almalinux-8" } as const;
export const defaultDistributionText = `${suiting.usual}; almalinux-9 for folders with packages for dnf only; ${suiting.cgroups1} for platforms that need cgroups 1`;

export function chooseDistribution(
  asked: string,
  forFolder: string | undefined,
  needsCgroups1: boolean,
): string {
  if (asked !== defaultDistribution) return asked;
  return forFolder ?? (needsCgroups1 ? suiting.cgroups1 : suiting.usual);
}

/** Throws `bad-usage` for an unknown distribution. */
export function publishedImage(distribution: string, architecture: Architecture): PublishedImage {
  const source = sources[distribution];
  if (source !== undefined) return source.image(architecture);
  const instead = `pass an image with ${optionName("image")}`;
  throw unknownDistribution(distribution, {
    images: "No cloud image is",
    known: distributions,
    instead,
  });
}

function alma(version: number): Published {
  return ({ name }) => {
    const folder = `https://repo.almalinux.org/almalinux/${version}/cloud/${name}/images`;
    return {
      url: `${folder}/AlmaLinux-${version}-GenericCloud-latest.${name}.qcow2`,
      sumsUrl: `${folder}/CHECKSUM`,
    };
  };
}

function debian(version: number, codename: string): Published {
  const folder = `https://cloud.debian.org/images/cloud/${codename}/latest`;
  return ({ debianName }) => ({
    url: `${folder}/debian-${version}-genericcloud-${debianName}.qcow2`,
    sumsUrl: `${folder}/SHA512SUMS`,
  });
}

function rocky(version: number): Published {
  return ({ name }) => {
    const folder = `https://dl.rockylinux.org/pub/rocky/${version}/images/${name}`;
    return {
      url: `${folder}/Rocky-${version}-GenericCloud-Base.latest.${name}.qcow2`,
      sumsUrl: `${folder}/CHECKSUM`,
    };
  };
}

function ubuntu(version: string): Published {
  const folder = `https://cloud-images.ubuntu.com/releases/${version}/release`;
  return ({ debianName }) => ({
    url: `${folder}/ubuntu-${version}-server-cloudimg-${debianName}.img`,
    sumsUrl: `${folder}/SHA256SUMS`,
  });
}

/**
 * Why SELinux can't be set to enforcing on nodes with this distribution, as one sentence, or
 * `undefined`. Nothing is known about an own image.
 */
export function selinuxProblem(distribution: string): string | undefined {
  if (distribution === "own image" || /^(?:rocky|almalinux)-/.test(distribution)) return undefined;
  return `${chooseDistribution(distribution, undefined, false)} comes without SELinux`;
}
