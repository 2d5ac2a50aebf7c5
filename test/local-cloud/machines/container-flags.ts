import { docker } from "./docker.ts";

/** What a system with systemd needs to run in a container: flags for `docker create`, and the command that starts it. */
export interface SystemFlags {
  readonly flags: readonly string[];
  readonly command: readonly string[];
}

const everywhere = [
  "--env=container=docker",
  // A terminal, so that systemd and cloud-init write to the console that EC2 would show.
  "--tty",
  "--tmpfs=/run",
  "--tmpfs=/run/lock",
];

/** SYS_BOOT: reboot and power-off end the container with exit codes of their own, so that a reboot can be told. */
const named = [
  "--cap-add=SYS_ADMIN",
  "--cap-add=NET_ADMIN",
  "--cap-add=SYS_BOOT",
  "--security-opt=seccomp=unconfined",
  "--security-opt=apparmor=unconfined",
];

/**
 * Under cgroups 1 (also the hybrid) systemd gets the host's tree. Under cgroups 2 it gets one of its own, which docker
 * leaves writable for privileged containers only; where those can't be had, the machine remounts it before systemd starts.
 */
export async function systemFlags(image: string): Promise<SystemFlags> {
  const cgroups = await docker(["info", "--format={{.CgroupVersion}}"], undefined);
  if (cgroups !== "2") {
    const tree = ["--cgroupns=host", "--volume=/sys/fs/cgroup:/sys/fs/cgroup:rw"];
    return { flags: [...everywhere, ...named, ...tree], command: ["/sbin/init"] };
  }
  if (await canBePrivileged(image)) {
    return { flags: [...everywhere, "--privileged", "--cgroupns=private"], command: ["/sbin/init"] };
  }
  const remount = "mount -o remount,rw /sys/fs/cgroup && exec /sbin/init";
  return { flags: [...everywhere, ...named, "--cgroupns=private"], command: ["/bin/sh", "-c", remount] };
}

async function canBePrivileged(image: string): Promise<boolean> {
  try {
    await docker(["run", "--rm", "--privileged", "--network=none", image, "/bin/true"], undefined);
    return true;
  } catch {
    return false;
  }
}
