import { readFile, writeFile } from "node:fs/promises";
import type { Engine } from "./engine.ts";
import type { EngineFacts } from "./engine-facts.ts";

/** What a container with systemd needs to run: words for `create`, and the command that starts it. */
export interface SystemFlags {
  readonly isPrivileged: boolean;
  readonly words: readonly string[];
  readonly command: readonly string[];
}

const everywhere = [
  "--env=container=docker",
  // A terminal, so that systemd writes to a console that can be shown.
  "--tty",
  "--tmpfs=/run",
  "--tmpfs=/run/lock",
  // A container engine inside of a node can't lay its layers over ours.
  "--volume=/var/lib/docker",
  "--stop-signal=SIGRTMIN+3",
];

/**
 * Under cgroups 1 (also the hybrid) systemd gets the host's tree. Under cgroups 2 it gets one of its own, which the engine
 * leaves writable for privileged containers only; where those can't be had, the node remounts it before systemd starts.
 */
export function systemFlags(
  facts: Pick<EngineFacts, "cgroupVersion" | "hasAppArmor" | "hasSelinux">,
  isPrivileged: boolean,
): SystemFlags {
  const rights = isPrivileged ? ["--privileged"] : named(facts);
  if (facts.cgroupVersion === "1") {
    const tree = ["--cgroupns=host", "--volume=/sys/fs/cgroup:/sys/fs/cgroup:rw"];
    return { isPrivileged, words: [...everywhere, ...rights, ...tree], command: ["/sbin/init"] };
  }
  const remount = "mount -o remount,rw /sys/fs/cgroup && exec /sbin/init";
  const command = isPrivileged ? ["/sbin/init"] : ["/bin/sh", "-c", remount];
  return { isPrivileged, words: [...everywhere, ...rights, "--cgroupns=private"], command };
}

function named({ hasAppArmor, hasSelinux }: Pick<EngineFacts, "hasAppArmor" | "hasSelinux">): readonly string[] {
  return [
    "--cap-add=SYS_ADMIN",
    "--cap-add=NET_ADMIN",
    "--security-opt=seccomp=unconfined",
    ...(hasAppArmor ? ["--security-opt=apparmor=unconfined"] : []),
    ...(hasSelinux ? ["--security-opt=label=disable"] : []),
  ];
}

/**
 * Tried, since nothing else tells: an engine that itself runs in a container often may not give what it hasn't got. That takes most of a second,
 * so `memory`, a file, keeps the answer for as long as this engine runs: its bridge network is a new one at each start.
 */
export async function canBePrivileged(
  engine: Engine,
  { image, memory }: { readonly image: string; readonly memory: string },
  signal: AbortSignal,
): Promise<boolean> {
  const request = { words: ["network", "inspect", "--format={{.Id}}", "bridge"], accepts: () => true };
  const [bridge, text] = await Promise.all([engine.ask(request, signal), readFile(memory, "utf8").catch(() => "")]);
  const [, known, answer] = /^([0-9a-f]{64}) (yes|no)\n$/.exec(text) ?? [];
  if (known !== undefined && known === bridge) return answer === "yes";
  const isPrivileged = await tryPrivileged(engine, image);
  // Without it, the next creation tries again.
  await writeFile(memory, `${bridge} ${isPrivileged ? "yes" : "no"}\n`, { mode: 0o600 }).catch(() => {});
  return isPrivileged;
}

async function tryPrivileged(engine: Engine, image: string): Promise<boolean> {
  const words = ["run", "--rm", "--privileged", "--network=none", "--entrypoint=/bin/true", image];
  try {
    await engine.change({ words });
    return true;
  } catch {
    return false;
  }
}
