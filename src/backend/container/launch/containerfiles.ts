import { createHash } from "node:crypto";
import { ClusterError } from "../../../errors.ts";
import type { ImagePreparation } from "../../../model/creation.ts";

interface Source {
  readonly from: string;
  readonly family: keyof typeof recipes;
  /** The distribution's systemd doesn't support cgroups 2. */
  readonly needsCgroups1?: true;
}

/** The published images that node images are built on, by distribution name. */
const sources: Readonly<Record<string, Source>> = {
  "almalinux-8": { from: "docker.io/library/almalinux:8", family: "dnf" },
  "almalinux-9": { from: "docker.io/library/almalinux:9", family: "dnf" },
  "centos-7": { from: "docker.io/library/centos:7", family: "yum", needsCgroups1: true },
  "debian-11": { from: "docker.io/library/debian:11", family: "apt" },
  "debian-12": { from: "docker.io/library/debian:12", family: "apt" },
  "debian-13": { from: "docker.io/library/debian:13", family: "apt" },
  "rocky-8": { from: "docker.io/rockylinux/rockylinux:8", family: "dnf" },
  "rocky-9": { from: "docker.io/rockylinux/rockylinux:9", family: "dnf" },
  "ubuntu-22": { from: "docker.io/library/ubuntu:22.04", family: "apt" },
  "ubuntu-24": { from: "docker.io/library/ubuntu:24.04", family: "apt" },
};

export const distributions: readonly string[] = Object.keys(sources);

/** Stands for the distribution that suits the engine's machine, if the user hasn't named one. */
export const defaultDistribution = "by-host";
const suiting = { "1": "centos-7", "2": "debian-12" } as const;
export const defaultDistributionText = `${suiting["1"]} under cgroups 1, ${suiting["2"]} under cgroups 2`;

/** Returns the distribution of the nodes. Throws `machine-not-set-up` for one whose systemd can't boot on the engine's machine. */
export function chooseDistribution(asked: string, cgroupVersion: "1" | "2"): string {
  if (asked === defaultDistribution) return suiting[cgroupVersion];
  if (cgroupVersion === "1" || sources[asked]?.needsCgroups1 !== true) return asked;
  throw new ClusterError(
    "machine-not-set-up",
    `${asked} cannot boot in containers here: its systemd needs cgroups 1, and this machine has cgroups 2.`,
    {
      hint: `Choose another \`linuxDistribution\`, such as ${suiting[cgroupVersion]}.`,
      facts: { distribution: asked, cgroupVersion },
    },
  );
}

/** Containers have the control groups of the machine that their engine runs on. */
export const hostCgroupsAdvice =
  "Boot this machine with systemd.unified_cgroup_hierarchy=0 on its kernel's command line, or use virtual machines or the cloud, with a distribution that has version 1, such as almalinux-8.";

/** The name of all images built here; each has its own tag. */
export const builtImages = "localhost/cluster-e2e-node";

export interface NodeRecipe {
  /** The name with the image's tag: the same text always gives the same tag. */
  readonly image: string;
  readonly containerfile: string;
}

/** Returns how to build the distribution's node image, including what a platform needs in it. Throws `bad-usage` for an unknown distribution. */
export function nodeRecipe(distribution: string, preparation: ImagePreparation | undefined): NodeRecipe {
  const source = sources[distribution];
  if (source === undefined) {
    throw new ClusterError("bad-usage", `No node image is known for the distribution "${distribution}".`, {
      hint: `Known: ${distributions.join(", ")}. Any other image: \`nodeImage\`.`,
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
const preparationStep = ({ script }: ImagePreparation): string => `# What the platform needs of its nodes.
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
# Ubuntu would start sshd at the first connection only.
RUN systemctl disable ssh.socket 2>/dev/null; systemctl enable ssh.service`;

/** Leaves out curl because the images have it already, some as curl-minimal. */
const dnf = `RUN dnf -y install ca-certificates dbus hostname iproute iputils kmod openssh-clients openssh-server procps-ng python3 \\
      sudo systemd tar which xz \\
 && dnf clean all
RUN systemctl enable sshd.service`;

/**
 * CentOS 7 has reached its end of life, so its packages are in the vault. Uses http, because the certificates of an old system may be too old for the
 * vault's.
 */
const yum = `RUN sed -i -e 's/^mirrorlist=/#&/' \\
      -e 's|^#* *baseurl=http://mirror.centos.org/centos/[$]releasever|baseurl=http://vault.centos.org/7.9.2009|' \\
      -e 's|^#* *baseurl=http://mirror.centos.org/altarch/[$]releasever|baseurl=http://vault.centos.org/altarch/7.9.2009|' \\
      /etc/yum.repos.d/CentOS-*.repo \\
 && yum -y install ca-certificates curl dbus hostname iproute iputils kmod openssh-clients openssh-server procps-ng python3 sudo \\
      systemd tar which xz \\
 && yum clean all
RUN systemctl enable sshd.service`;

const recipes = { apt, dnf, yum } as const;

/**
 * Builds a container with a whole system. Masks units that can only fail or idle in one, above all those that a privileged container would apply to
 * the host's devices and terminals. Each node gets its own identity: host keys come from outside, and the machine id is created at boot.
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
