import { ClusterError } from "../../errors.ts";
import { optionName } from "../../references.ts";

/** Which package manager a distribution has. */
export type PackageFamily = "apt" | "dnf" | "yum";

interface Source {
  readonly from: string;
  readonly family: PackageFamily;
  /** The distribution's systemd doesn't support cgroups 2. */
  readonly needsCgroups1?: true;
}

/** The published images that node images are built on, by distribution name. */
export const sources: Readonly<Record<string, Source>> = {
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
export const defaultDistributionText = `debian-12; almalinux-9 for folders with packages for dnf only; ${suiting["1"]} with cgroups 1 for release artifacts`;

/** Returns the nodes' distribution. Throws `machine-not-set-up` if its systemd can't boot on the engine's machine. */
export function chooseDistribution(
  asked: string,
  cgroupVersion: "1" | "2",
  forFolder: string | undefined,
): string {
  if (asked === defaultDistribution) return forFolder ?? suiting[cgroupVersion];
  if (cgroupVersion === "1" || sources[asked]?.needsCgroups1 !== true) return asked;
  throw new ClusterError(
    "machine-not-set-up",
    `${asked} cannot boot in containers here: its systemd needs cgroups 1, and this computer has cgroups 2.`,
    {
      hint: `Choose another ${optionName("linuxDistribution")}, such as ${suiting[cgroupVersion]}.`,
      facts: { distribution: asked, cgroupVersion },
    },
  );
}

/** Containers have the control groups of the machine that their engine runs on. */
export const hostCgroupsAdvice =
  "Boot this computer with systemd.unified_cgroup_hierarchy=0 on its kernel command line, or use virtual machines or the cloud with a distribution that has cgroups 1, such as almalinux-8.";

/** Why SELinux can't be set to enforcing on nodes, as one sentence. */
export const selinuxProblem = (): string =>
  "containers have the SELinux of the machine that they run on, whose mode is not ours to change";
