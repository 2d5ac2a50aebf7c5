import { ClusterError } from "../../../errors.ts";
import { assertEnoughUsers } from "../engine/assert-usable.ts";
import type { Engine } from "../engine/engine.ts";
import { runBriefly } from "../engine/run-briefly.ts";
import { engineRun } from "../engine/default-network.ts";
import type { DescribedNetwork, EngineFacts, EngineKind } from "../engine/engine-kind.ts";
import { writeFile } from "node:fs/promises";
import { shellText } from "../../../ssh/shell-text.ts";
import { readOwnText } from "../../../system/files/read-text.ts";
import passProxy from "./pass-proxy.sh" with { type: "text" };
import startSystem from "./start-system.sh" with { type: "text" };

/** How to run a container with systemd: options for `create`, and the command that starts it. */
export interface SystemFlags {
  readonly words: readonly string[];
  readonly command: readonly string[];
  /** What a node without a limit may use; 0: not known. */
  readonly memoryBytes: number;
}

/** Where nodes keep what start-system.sh needs. */
export const nodeState = "/var/lib/cluster-e2e-node";

const startText = (shellText(passProxy, { STATE: nodeState }) + shellText(startSystem)).trim();

/** The rights of containers, as options for `create`. */
interface Rights {
  readonly isPrivileged: boolean;
  readonly words: readonly string[];
}

const everywhere = [
  // A terminal, so that systemd writes to a console that can be shown.
  "--tty",
  "--tmpfs=/run",
  "--tmpfs=/run/lock",
  "--stop-signal=SIGRTMIN+3",
];

/**
 * With cgroups 1 (and the hybrid), systemd gets the host's tree. With cgroups 2 it gets a tree of its own, which the
 * engine leaves writable for privileged containers only. If those aren't allowed, the node remounts the tree before
 * systemd starts.
 */
export function systemFlags(
  kind: Pick<EngineKind, "name" | "systemWords">,
  { cgroupVersion, memoryBytes }: Pick<EngineFacts, "cgroupVersion" | "memoryBytes">,
  rights: Rights,
): SystemFlags {
  const tree =
    cgroupVersion === "1"
      ? ["--cgroupns=host", "--volume=/sys/fs/cgroup:/sys/fs/cgroup:rw"]
      : ["--cgroupns=private"];
  return {
    words: [
      `--env=container=${kind.name}`,
      ...everywhere,
      ...kind.systemWords,
      ...rights.words,
      ...tree,
    ],
    command: ["/bin/sh", "-c", startText],
    memoryBytes,
  };
}

/** Returns the possible sets of rights, the largest first. */
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
  // Privileged nodes have every device. These two are for file systems and tunnels of programs, such as GlusterFS's.
  const devices = ["--device=/dev/fuse", "--device=/dev/net/tun"];
  // start-system.sh makes them.
  const loops = ["--device-cgroup-rule=b 7:* rmw", "--device-cgroup-rule=c 10:237 rmw"];
  // Without it, the engine can't tell a reboot by force from a power-off.
  const reboot = "--cap-add=SYS_BOOT";
  // Docker gives these anyway. Without the first, `ping` doesn't even start.
  const usual = ["NET_RAW", "MKNOD", "AUDIT_WRITE"].map((name) => `--cap-add=${name}`);
  return [
    ...limited(true, ["--privileged"]),
    ...limited(false, [...named, ...usual, reboot, ...devices, ...loops]),
    ...limited(false, [...named, ...usual, reboot, ...devices]),
    ...limited(false, [...named, ...usual, ...devices]),
    ...limited(false, [...named, ...usual]),
    ...limited(false, named),
  ];
}

/**
 * Returns the largest set of rights that this engine grants. Only trying shows it: an engine that itself runs in a
 * container often may not grant rights that it doesn't have. If the smallest set doesn't work
 * either, the node's own start says why. Rethrows anything but a refusal, such as a time-out or a full disk, because it
 * doesn't show what the engine would grant. Throws `machine-not-set-up` if containers have too few users.
 */
export async function findRights(
  engine: Engine,
  facts: EngineFacts,
  image: string,
): Promise<Rights> {
  const possible = possibleRights(engine.kind, facts);
  for (const rights of possible) {
    const maps = await mapsWith(engine, rights, image);
    if (maps === undefined) continue;
    // Docker doesn't say itself how many there are.
    if (facts.isRootless) assertEnoughUsers(engine.kind, { userCount: readUserCount(maps) });
    return rights;
  }
  return possible.at(-1) ?? { isPrivileged: false, words: [] };
}

const showMaps = ["/bin/sh", "-c", "cat /proc/self/uid_map; echo; cat /proc/self/gid_map"] as const;

/** The users and groups of a container with these rights; undefined if the engine refuses it. */
async function mapsWith(
  engine: Engine,
  { words }: Rights,
  image: string,
): Promise<string | undefined> {
  try {
    return await runBriefly(engine.kind, { image, options: words, argv: showMaps }, async (run) =>
      engine.change({ words: run }),
    );
  } catch (error) {
    if (error instanceof ClusterError && error.id === "engine-failed") return undefined;
    throw error;
  }
}

/**
 * The smaller number of the kernel's two tables, whose lines end with the size of a range;
 * undefined if there is none.
 */
function readUserCount(maps: string): number | undefined {
  const counts = maps
    .split("\n\n")
    .map((table) =>
      table.split("\n").reduce((sum, line) => sum + Number(line.trim().split(/\s+/)[2]), 0),
    );
  const least = Math.min(...counts);
  return counts.length === 2 && !Number.isNaN(least) ? least : undefined;
}

/**
 * Returns the rights that containers get. Tests this at the first creation only, because a trial
 * takes most of a second, in which nothing else can begin. The file `memory` caches the result
 * until the engine restarts, if the engine reports its restarts.
 */
export async function rememberedRights(
  engine: Engine,
  {
    facts,
    image,
    memory,
    usual,
  }: {
    readonly facts: EngineFacts;
    readonly image: string;
    readonly memory: string;
    /** The engine's own network. */
    readonly usual: DescribedNetwork;
  },
): Promise<Rights> {
  const run = engineRun(engine.kind, usual);
  if (run === "") return findRights(engine, facts, image);
  const text = await readOwnText(memory).catch(() => "");
  const known = possibleRights(engine.kind, facts).find(
    (rights) => text === memoryText(run, rights),
  );
  if (known !== undefined) return known;
  const found = await findRights(engine, facts, image);
  // If writing fails, the next creation tests again.
  await writeFile(memory, memoryText(run, found), { mode: 0o600 }).catch(() => {});
  return found;
}

const memoryText = (run: string, { words }: Rights): string =>
  `${JSON.stringify({ run, words })}\n`;
