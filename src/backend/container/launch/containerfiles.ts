import type { ImagePreparation } from "../../contract.ts";
import { createHash } from "node:crypto";
import { ClusterError } from "../../../errors.ts";
import { withoutHeader } from "../../../ssh/shell-text.ts";
import apt from "./apt.containerfile" with { type: "text" };
import dnf from "./dnf.containerfile" with { type: "text" };
import yum from "./yum.containerfile" with { type: "text" };
import { distributions, type PackageFamily, sources } from "./distributions.ts";

/** The name of all images built here; each has its own tag. */
export const builtImages = "localhost/cluster-e2e-node";

export interface NodeRecipe {
  /** The name with the image's tag: the same text always gives the same tag. */
  readonly image: string;
  readonly containerfile: string;
}

/**
 * Returns how to build the distribution's node image, including what a platform needs in it. Throws `bad-usage` for an
 * unknown distribution.
 */
export function nodeRecipe(distribution: string, preparation: ImagePreparation | undefined): NodeRecipe {
  const source = sources[distribution];
  if (source === undefined) {
    throw new ClusterError("bad-usage", `No node image is known for the distribution "${distribution}".`, {
      hint: `Choose one of ${distributions.join(", ")}, or pass an image with \`nodeImage\`.`,
      facts: { distribution, known: distributions },
    });
  }
  const base = containerfileOf(source.from, recipes[source.family]);
  // The preparation comes last, so that the engine builds the steps before it only once for all platforms.
  const containerfile = preparation === undefined ? base : `${base}${preparationStep(preparation)}`;
  const hash = createHash("sha256").update(containerfile).digest("hex").slice(0, 16);
  const names = [distribution, ...(preparation === undefined ? [] : [preparation.name]), hash];
  return { image: `${builtImages}:${names.join("-")}`, containerfile };
}

/** Encoded, because not every builder reads multi-line scripts. */
const preparationStep = ({ script }: ImagePreparation): string => `# What the platform needs on its nodes.
RUN echo ${Buffer.from(script).toString("base64")} | base64 -d | sh -s \\
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/archives/*.deb /var/cache/dnf /var/cache/yum
`;

/** The steps that install what a node needs. */
const recipes: Readonly<Record<PackageFamily, string>> = {
  apt: withoutHeader(apt).trimEnd(),
  dnf: withoutHeader(dnf).trimEnd(),
  yum: withoutHeader(yum).trimEnd(),
};

/**
 * Builds a container with a whole system. Masks units that can only fail or idle in one, above all those that a
 * privileged container would apply to the host's devices and terminals. Each node gets its own identity: host keys come
 * from outside, and the machine id is created at boot.
 */
function containerfileOf(from: string, packages: string): string {
  return `FROM ${from}
ENV container=docker
${packages}
RUN systemctl mask ${maskedUnits.join(" ")} \\
 && systemctl set-default multi-user.target
RUN rm -f /etc/ssh/ssh_host_*_key /etc/ssh/ssh_host_*_key.pub /var/lib/dbus/machine-id /run/nologin && : >/etc/machine-id
STOPSIGNAL SIGRTMIN+3
CMD ["/sbin/init"]
`;
}

const maskedUnits = [
  "apt-daily-upgrade.timer",
  "apt-daily.timer",
  "dnf-makecache.timer",
  "dpkg-db-backup.timer",
  "e2scrub_all.timer",
  "e2scrub_reap.service",
  "fstrim.timer",
  "console-getty.service",
  "getty@.service",
  "serial-getty@.service",
  "getty-static.service",
  "dev-hugepages.mount",
  "dev-mqueue.mount",
  "sys-fs-fuse-connections.mount",
  "sys-kernel-config.mount",
  "sys-kernel-debug.mount",
  "sys-kernel-tracing.mount",
  "proc-sys-fs-binfmt_misc.automount",
  "systemd-journald-audit.socket",
  "systemd-modules-load.service",
  "systemd-remount-fs.service",
  "systemd-udevd.service",
  "systemd-udevd-control.socket",
  "systemd-udevd-kernel.socket",
  "systemd-udev-trigger.service",
  "systemd-update-utmp.service",
  "systemd-update-utmp-runlevel.service",
] as const;
