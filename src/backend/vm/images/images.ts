import { ClusterError } from "../../../errors.ts";
import type { Architecture } from "../qemu/architecture.ts";

/** A disk image as its publisher offers it. */
export interface PublishedImage {
  readonly url: string;
  /** Lists the sums of all images beside it, of which one must be this image's. */
  readonly sumsUrl: string;
}

type Published = (architecture: Architecture) => PublishedImage;

/** Cloud images with cloud-init, as their publishers name the newest of each release; all of them for every architecture. */
const published: Readonly<Record<string, Published>> = {
  "almalinux-8": alma(8),
  "almalinux-9": alma(9),
  "debian-11": debian(11, "bullseye"),
  "debian-12": debian(12, "bookworm"),
  "debian-13": debian(13, "trixie"),
  "rocky-8": rocky(8),
  "rocky-9": rocky(9),
  "ubuntu-22": ubuntu("22.04"),
  "ubuntu-24": ubuntu("24.04"),
};

export const distributions: readonly string[] = Object.keys(published);
export const defaultDistribution = "debian-12";

/** Throws `bad-usage` for an unknown one. */
export function publishedImage(distribution: string, architecture: Architecture): PublishedImage {
  const image = published[distribution];
  if (image !== undefined) return image(architecture);
  throw new ClusterError("bad-usage", `No cloud image is known for the distribution "${distribution}".`, {
    hint: `Known: ${distributions.join(", ")}. Any other image: \`image\`.`,
    facts: { distribution, known: distributions },
  });
}

function alma(version: number): Published {
  return ({ name }) => {
    const folder = `https://repo.almalinux.org/almalinux/${version}/cloud/${name}/images`;
    return { url: `${folder}/AlmaLinux-${version}-GenericCloud-latest.${name}.qcow2`, sumsUrl: `${folder}/CHECKSUM` };
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
    return { url: `${folder}/Rocky-${version}-GenericCloud-Base.latest.${name}.qcow2`, sumsUrl: `${folder}/CHECKSUM` };
  };
}

function ubuntu(version: string): Published {
  const folder = `https://cloud-images.ubuntu.com/releases/${version}/release`;
  return ({ debianName }) => ({
    url: `${folder}/ubuntu-${version}-server-cloudimg-${debianName}.img`,
    sumsUrl: `${folder}/SHA256SUMS`,
  });
}
