import { randomBytes } from "node:crypto";
import { rmSync } from "node:fs";
import { statfs, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ClusterError, messageOf } from "../../errors.ts";
import { optionName } from "../../references.ts";
import { type Check, type Outcome, fail, pass, skip, warn } from "../../model/check.ts";
import { homeFolder } from "../../store/state-folder.ts";
import { isAccessible } from "../../system/files/private-file.ts";
import { ownedFolder } from "../../system/files/owned-folder.ts";
import { readOwnText } from "../../system/files/read-text.ts";
import { outsideLine } from "../../system/printable.ts";
import type { Environment, Work } from "../../system/runtime.ts";
import { chooseDistribution, defaultDistribution } from "./distributions.ts";
import { spaceAdvice } from "./engine/engine-errors.ts";
import type { EngineFacts, EngineKind, EngineName } from "./engine/engine-kind.ts";
import { type Engine, readEngineFacts } from "./engine/engine.ts";
import { lookBriefly, untilLate } from "./engine/run-briefly.ts";
import { findRights } from "./launch/system-flags.ts";
import { type EngineMachine, lookAtMachine, ownImage } from "./look-at-machine.ts";
import { once } from "../../system/concurrency.ts";
import { type Way, findReach, reachText } from "./engine/find-reach.ts";
import { chooseEngine } from "./engine/choose-engine.ts";
import { creationsRoot, readInventory } from "./records/records.ts";

const neededBytes = 5e9;
/** A master, an agent and a public agent with the sample platform use about 1 GB. */
const usualMemoryBytes = 2e9;
const systemdTree = "/sys/fs/cgroup/systemd";
const inotifyFile = "/proc/sys/fs/inotify/max_user_instances";
/** A node uses about five inotify instances. The kernel's default is 128 for all processes of root. */
const usualInotifyInstances = 256;

export function hostChecks(facts: ContainerFacts): readonly Check[] {
  return [
    checkOfEngine("node addresses", facts, (_, { kind }) => checkReach(facts, kind)),
    checkOfEngine("storage driver", facts, judgeStorage),
    checkOfEngine("image space", facts, (engineFacts, engine) =>
      checkSpace(facts, engineFacts, engine),
    ),
    checkOfEngine("memory", facts, judgeMemory),
    checkOfEngine("cgroups", facts, (engineFacts) => checkCgroups(facts, engineFacts)),
    checkOfEngine("inotify", facts, () => checkInotify(facts)),
  ];
}

async function checkReach(facts: ContainerFacts, kind: EngineKind): Promise<Outcome> {
  const { reach, why } = await facts.way();
  if (reach === "unknown")
    return skip(`Not known: ${why}. Nodes are reached ${reachText(reach, kind)}.`);
  return pass(`Nodes are reached ${reachText(reach, kind)}: ${why}`);
}

function judgeStorage({ storageDriver }: EngineFacts, { kind }: Engine): Outcome {
  const { advice, title } = kind;
  if (storageDriver === "")
    return skip(`Not checked: ${title} does not say what stores its images.`);
  const driver = outsideLine(storageDriver);
  if (!["vfs", "devicemapper", "aufs"].includes(storageDriver)) return pass(driver);
  return warn(
    `The storage driver ${driver} is slow, because it copies whole images, or is no longer maintained.`,
    advice.storage,
  );
}

async function checkSpace(
  facts: ContainerFacts,
  { rootFolder, hasContainerdStore }: EngineFacts,
  { kind: { name, title } }: Engine,
): Promise<Outcome> {
  const isHere = (await isOnThisComputer(facts)) && !hasContainerdStore;
  const space = isHere ? await statfs(rootFolder).catch(() => undefined) : undefined;
  const free =
    space === undefined ? (await facts.machine())?.freeBytes : space.bavail * space.bsize;
  const folder = outsideLine(rootFolder) || "its folder";
  if (free === undefined)
    return skip(`Not checked: ${folder} is not known to be on this computer. ${unseen}`);
  const place = space === undefined ? `${title}'s store of images` : folder;
  const text = `${place} has ${(Math.floor(free / 1e8) / 10).toFixed(1)} GB free`;
  if (free >= neededBytes) return pass(text);
  return fail(`${text}, but images and nodes may need ${neededBytes / 1e9} GB.`, spaceAdvice(name));
}

/** Whether the engine's computer is this one. What isn't known is looked at by a container, wherever it is. */
const isOnThisComputer = async ({ engineFacts, way }: ContainerFacts): Promise<boolean> =>
  (await engineFacts()).location === "here" ||
  (await way().catch(() => undefined))?.reach === "direct";

const unseen = "A container can look as soon as the first create has built a node image.";

function judgeMemory({ memoryBytes }: EngineFacts, { kind: { title } }: Engine): Outcome {
  if (memoryBytes === 0) return skip(`Not checked: ${title} does not say how much memory it has.`);
  const text = `${(memoryBytes / 1e9).toFixed(1)} GB`;
  if (memoryBytes >= usualMemoryBytes) return pass(text);
  return warn(
    `${title}'s machine has ${text} of memory, but a small cluster needs ${usualMemoryBytes / 1e9} GB.`,
    `Use fewer nodes, or give the virtual machine in which ${title} runs more memory.`,
  );
}

/** With cgroups 1, the nodes' systemd needs the tree that a host's systemd would have created. */
async function checkCgroups(
  facts: ContainerFacts,
  { cgroupVersion, idleLimits }: EngineFacts,
): Promise<Outcome> {
  const forReleases = chooseDistribution(defaultDistribution, cgroupVersion, undefined);
  const others = forReleases === "debian-12" ? "" : `, those of release artifacts ${forReleases}`;
  const nodes = [
    `nodes run debian-12 by default${others}`,
    ...idleLimits.map((name) => `${optionName(name)} cannot be limited`),
  ].join("; ");
  if (cgroupVersion === "2") return pass(`Version 2: ${nodes}`);
  const isHere = await isOnThisComputer(facts);
  const hasTree = isHere
    ? await isAccessible(systemdTree)
    : (await facts.machine())?.hasSystemdTree;
  if (hasTree === undefined)
    return skip(`Not checked: whether version 1 has ${systemdTree} there. ${unseen}`);
  if (hasTree) return pass(`Version 1, with a systemd hierarchy: ${nodes}`);
  return fail(
    `${isHere ? "This computer" : "The engine's computer"} has cgroups 1 without ${systemdTree}, which the nodes' systemd needs.`,
    `Create it${isHere ? "" : " there"}:\n    sudo mkdir ${systemdTree} && sudo mount -t cgroup -o none,name=systemd cgroup ${systemdTree}`,
  );
}

async function checkInotify(facts: ContainerFacts): Promise<Outcome> {
  const instances = (await isOnThisComputer(facts))
    ? await readOwnText(inotifyFile).catch(() => undefined)
    : undefined;
  return judgeInotify(instances ?? (await facts.machine())?.inotifyInstances);
}

/** `instances` is the content of the kernel's file; undefined if it can't be read. */
export function judgeInotify(instances: string | undefined): Outcome {
  const limit = Number(instances?.trim() || undefined);
  if (Number.isNaN(limit)) return skip(`Not checked: cannot read ${inotifyFile}. ${unseen}`);
  if (limit >= usualInotifyInstances) return pass(`${limit} instances per user`);
  return warn(
    `${limit} inotify instances per user are enough for only about ${Math.floor(limit / 6)} nodes.`,
    "Allow more:\n    sudo sysctl fs.inotify.max_user_instances=1024",
  );
}

const target = "/cluster-e2e-mount";
const enforceFile = "/sys/fs/selinux/enforce";

/**
 * Checks whether nodes can read their volumes, and how this machine's SELinux affects that. The
 * first check mounts a folder in the user's home, because a virtual machine shares only some
 * folders with its containers, and an engine elsewhere shares none of ours.
 */
export function volumeChecks(
  facts: ContainerFacts,
  environment: Environment,
  signal: AbortSignal,
): readonly [mounts: Check, selinux: Check] {
  return [
    checkOfEngine("mounts", facts, async (engineFacts, engine) =>
      tryMount({ engineFacts, engine, environment }, signal),
    ),
    checkOfEngine("selinux", facts, async () => {
      if (!(await isOnThisComputer(facts)))
        return skip("Not checked: nodes are not known to run on this computer.");
      return judgeSelinux(await readOwnText(enforceFile).catch(() => undefined));
    }),
  ];
}

interface Trial {
  readonly engineFacts: EngineFacts;
  readonly engine: Engine;
  readonly environment: Environment;
}

async function tryMount(
  { engineFacts, engine, environment }: Trial,
  signal: AbortSignal,
): Promise<Outcome> {
  const image = await ownImage(engine, signal);
  if (image === undefined)
    return skip("Not checked: there is no node image until the first create builds one.");
  const home = homeFolder(environment);
  const scratch = await ownedFolder(home).catch(() => undefined);
  if (scratch === undefined) return skip(`Not checked: cannot create a folder in ${home}.`);
  await using folder = scratch;
  // On an interrupt, and after this check's limit, the program ends without waiting for work under way here.
  signal.addEventListener("abort", () => rmSync(folder.path, { recursive: true, force: true }), {
    once: true,
  });
  const text = randomBytes(16).toString("hex");
  await writeFile(join(folder.path, "note"), text);
  // Nothing that doctor begins may keep it from ending.
  const change: Engine["change"] = async (request) =>
    untilLate(async (late) => engine.ask(request, late), signal);
  const rights = await findRights({ ...engine, change }, engineFacts, image);
  const mount = `--mount=type=bind,source=${folder.path},target=${target},readonly`;
  const read = {
    image,
    options: [...rights.words, mount],
    argv: ["/bin/cat", `${target}/note`],
  } as const;
  const problem = await lookBriefly(engine, read, signal).then(
    (found) => (found === text ? undefined : "its content differs there."),
    (error: unknown) => {
      if (error instanceof ClusterError) return messageOf(error);
      throw error;
    },
  );
  if (problem === undefined)
    return pass(`Containers can read this computer's folders, such as those in ${home}`);
  const isShared = ["here", "virtual-machine"].includes(engineFacts.location);
  const effect = isShared
    ? "will not work"
    : `can only mount what is on the computer that ${engine.kind.title} runs on`;
  return warn(
    `A container cannot read a folder in ${home}, so ${optionName("customVolumes")} ${effect}: ${problem}`,
    remedy(engineFacts, engine),
  );
}

function remedy({ location }: EngineFacts, { kind: { title } }: Engine): string {
  if (location === "here") return "The folders must be readable for root on this computer.";
  const share =
    "Docker Desktop: Settings, Resources, File sharing. Podman: podman machine init --volume.";
  return location === "virtual-machine"
    ? `Share them with the virtual machine in which ${title} runs. ${share}`
    : `Name folders of the computer that ${title} runs on. If it is a virtual machine, share yours with it. ${share}`;
}

/** `enforce` is the content of the kernel's file; undefined if there is none. */
export function judgeSelinux(enforce: string | undefined): Outcome {
  if (enforce?.trim() !== "1") return pass("Not enforcing on this computer");
  return pass(
    `Enforcing, but nodes are not confined by it: ${optionName("customVolumes")} needs no :z, which would relabel your files for good`,
  );
}

/** The limit for checks that wait for the engine. */
const engineLimitMs = 40_000;

/** Facts about the engine that several checks share. Each is requested once, when first needed. */
export interface ContainerFacts {
  readonly engine: () => Promise<Engine>;
  readonly engineFacts: () => Promise<EngineFacts>;
  readonly way: () => Promise<Way>;
  /** What a container sees of the engine's computer; undefined as long as there is no node image. */
  readonly machine: () => Promise<EngineMachine | undefined>;
  readonly root: () => Promise<string>;
  /** Everything of ours, and what only looks like ours. */
  readonly inventory: () => ReturnType<typeof readInventory>;
}

export function containerFacts(
  work: Work,
  named: EngineName | undefined,
  platform: NodeJS.Platform,
): ContainerFacts {
  const engine = once(async () => chooseEngine(work, named));
  const engineFacts = once(async () => readEngineFacts(await engine(), work.signal));
  const root = once(async () => creationsRoot(await engine(), work));
  return {
    engine,
    engineFacts,
    root,
    way: once(async () => findReach(await engine(), await engineFacts(), platform, work.signal)),
    machine: once(async () => lookAtMachine(await engine(), work.signal)),
    inventory: once(async () => readInventory(await engine(), "all", await root(), work.signal)),
  };
}

/** Returns a check that is skipped if the engine doesn't answer, since that has a check of its own. */
export function checkOfEngine(
  name: string,
  facts: ContainerFacts,
  judge: (engineFacts: EngineFacts, engine: Engine) => Outcome | Promise<Outcome>,
): Check {
  const run = async (): Promise<Outcome> => {
    const known = await Promise.all([facts.engineFacts(), facts.engine()]).catch(
      (error: unknown) => {
        if (error instanceof ClusterError) return undefined;
        throw error;
      },
    );
    return known === undefined
      ? skip("Not checked: no container engine was found.")
      : judge(...known);
  };
  return { name, limitMs: engineLimitMs, run };
}
