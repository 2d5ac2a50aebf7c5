import { ClusterError } from "../../../errors.ts";
import type { Engine } from "../engine/engine.ts";
import type { EngineFacts, EngineKind } from "../engine/engine-kind.ts";

/** What a container with systemd needs to run: words for `create`, and the command that starts it. */
export interface SystemFlags {
  readonly words: readonly string[];
  readonly command: readonly string[];
}

/** What containers are allowed. */
export interface Rights {
  readonly isPrivileged: boolean;
  readonly words: readonly string[];
}

const everywhere = [
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
  kind: Pick<EngineKind, "name" | "systemWords">,
  { cgroupVersion }: Pick<EngineFacts, "cgroupVersion">,
  rights: Rights,
): SystemFlags {
  const words = [`--env=container=${kind.name}`, ...everywhere, ...kind.systemWords, ...rights.words];
  if (cgroupVersion === "1") {
    const tree = ["--cgroupns=host", "--volume=/sys/fs/cgroup:/sys/fs/cgroup:rw"];
    return { words: [...words, ...tree], command: ["/sbin/init"] };
  }
  const remount = "mount -o remount,rw /sys/fs/cgroup && exec /sbin/init";
  const command = rights.isPrivileged ? ["/sbin/init"] : ["/bin/sh", "-c", remount];
  return { words: [...words, "--cgroupns=private"], command };
}

/** What containers may be allowed, the most first. */
export function possibleRights(
  { limits }: Pick<EngineKind, "limits">,
  { hasAppArmor, hasSelinux }: Pick<EngineFacts, "hasAppArmor" | "hasSelinux">,
): readonly Rights[] {
  const named = [
    "--cap-add=SYS_ADMIN",
    "--cap-add=NET_ADMIN",
    "--security-opt=seccomp=unconfined",
    ...(hasAppArmor ? ["--security-opt=apparmor=unconfined"] : []),
    ...(hasSelinux ? ["--security-opt=label=disable"] : []),
  ];
  const limited = (isPrivileged: boolean, words: readonly string[]): readonly Rights[] =>
    limits.map((limit) => ({ isPrivileged, words: [...words, ...limit] }));
  return [...limited(true, ["--privileged"]), ...limited(false, named)];
}

/**
 * The most that this engine gives containers. Tried, since nothing else tells: an engine that itself runs in a container often may not give
 * what it hasn't got. The least is not tried: where it doesn't work either, the node's own start says why. Throws what is no refusal, such as a
 * time-out or a full disk: it tells nothing of what would be given.
 */
export async function findRights(engine: Engine, facts: EngineFacts, image: string): Promise<Rights> {
  const possible = possibleRights(engine.kind, facts);
  for (const rights of possible.slice(0, -1)) if (await isGiven(engine, rights, image)) return rights;
  return possible.at(-1) ?? { isPrivileged: false, words: [] };
}

async function isGiven(engine: Engine, { words }: Rights, image: string): Promise<boolean> {
  try {
    await engine.change({ words: ["run", "--rm", ...words, "--network=none", "--entrypoint=/bin/true", image] });
    return true;
  } catch (error) {
    if (error instanceof ClusterError && error.id === "engine-failed") return false;
    throw error;
  }
}
