import { docker } from "./docker.ts";

/** Everything that a system with systemd needs to run in a container: flags for `docker create`, and the command that starts it. */
export interface SystemFlags {
  readonly flags: readonly string[];
  readonly command: readonly string[];
}

const everywhere = [
  "--env=container=docker",
  // With a terminal, systemd and cloud-init write to the console, whose output EC2 would return.
  "--tty",
  "--tmpfs=/run",
  "--tmpfs=/run/lock",
];

/** With SYS_BOOT, a reboot and a power-off end the container with different exit codes. */
const named = [
  "--cap-add=SYS_ADMIN",
  "--cap-add=NET_ADMIN",
  "--cap-add=SYS_BOOT",
  "--security-opt=seccomp=unconfined",
  "--security-opt=apparmor=unconfined",
];

/**
 * With cgroups 1, also in hybrid mode, systemd gets the host's tree. With cgroups 2 it gets its own tree, which Docker makes writable only in
 * privileged containers. If these are not allowed, the machine remounts the tree before systemd starts.
 */
export async function systemFlags(image: string): Promise<SystemFlags> {
  const cgroups = await docker(["info", "--format={{.CgroupVersion}}"], undefined);
  if (cgroups !== "2") {
    const tree = ["--cgroupns=host", "--volume=/sys/fs/cgroup:/sys/fs/cgroup:rw"];
    return { flags: [...everywhere, ...named, ...tree], command: ["/sbin/init"] };
  }
  if (await canBePrivileged(image)) {
    return {
      flags: [...everywhere, "--privileged", "--cgroupns=private"],
      command: ["/sbin/init"],
    };
  }
  const remount = "mount -o remount,rw /sys/fs/cgroup && exec /sbin/init";
  return {
    flags: [...everywhere, ...named, "--cgroupns=private"],
    command: ["/bin/sh", "-c", remount],
  };
}

async function canBePrivileged(image: string): Promise<boolean> {
  try {
    await docker(["run", "--rm", "--privileged", "--network=none", image, "/bin/true"], undefined);
    return true;
  } catch {
    return false;
  }
}
