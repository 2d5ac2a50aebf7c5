import type { ImagePreparation } from "../../contract.ts";
import { createHash } from "node:crypto";
import { ClusterError } from "../../../errors.ts";
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

/** Keeps services from starting while packages are installed. */
const apt = `RUN printf '#!/bin/sh\\nexit 101\\n' >/usr/sbin/policy-rc.d && chmod 755 /usr/sbin/policy-rc.d \\
 && apt-get update \\
 && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends \\
      ca-certificates curl dbus iproute2 iputils-ping kmod libpam-systemd openssh-server procps python3 sudo systemd \\
      systemd-sysv tar xz-utils \\
 && apt-get clean && rm -rf /var/lib/apt/lists/* /usr/sbin/policy-rc.d
# Ubuntu would start sshd only at the first connection.
RUN systemctl disable ssh.socket 2>/dev/null; systemctl enable ssh.service`;

/** Leaves out curl because the images have it already, some as curl-minimal. */
const dnf = `RUN dnf -y install ca-certificates dbus hostname iproute iputils kmod openssh-clients openssh-server procps-ng python3 \\
      sudo systemd tar which xz \\
 && dnf clean all
RUN systemctl enable sshd.service`;

/**
 * CentOS 7 has reached its end of life, so its packages are in the vault. Uses http, because the certificates of an old
 * system may be too old for the vault's.
 */
const yum = `RUN sed -i -e 's/^mirrorlist=/#&/' \\
      -e 's|^#* *baseurl=http://mirror.centos.org/centos/[$]releasever|baseurl=http://vault.centos.org/7.9.2009|' \\
      -e 's|^#* *baseurl=http://mirror.centos.org/altarch/[$]releasever|baseurl=http://vault.centos.org/altarch/7.9.2009|' \\
      /etc/yum.repos.d/CentOS-*.repo \\
 && yum -y install ca-certificates curl dbus hostname iproute iputils kmod openssh-clients openssh-server procps-ng python3 sudo \\
      systemd tar which xz \\
 && yum clean all
RUN systemctl enable sshd.service`;

const recipes: Readonly<Record<PackageFamily, string>> = { apt, dnf, yum };

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
