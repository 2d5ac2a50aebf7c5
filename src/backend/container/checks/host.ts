import { isAccessible } from "../../../system/files/is-accessible.ts";
import { statfs } from "node:fs/promises";
import { type Check, fail, type Outcome, pass, skip, warn } from "../../../model/check.ts";
import { chooseDistribution, defaultDistribution } from "../launch/distributions.ts";
import type { EngineFacts, EngineKind } from "../engine/engine-kind.ts";
import { checkOfEngine, type ContainerFacts } from "./facts.ts";
import { readOwnText } from "../../../system/files/read-text.ts";

const neededBytes = 5e9;
/** A master, an agent and a public agent with the sample platform use about 1 GB. */
const usualMemoryBytes = 2e9;
const systemdTree = "/sys/fs/cgroup/systemd";
const inotifyFile = "/proc/sys/fs/inotify/max_user_instances";
/** A node uses about five inotify instances. The kernel's default is 128 for all processes of root. */
const usualInotifyInstances = 256;

/** Checks the machine that the engine runs on, and how this machine reaches its containers. */
export function hostChecks(facts: ContainerFacts, platform: NodeJS.Platform): readonly Check[] {
  return [
    checkOfEngine("node addresses", facts, (_, { kind }) => checkReach(facts, kind)),
    checkOfEngine("storage driver", facts, (told, { kind }) => judgeStorage(told, kind)),
    checkOfEngine("image space", facts, (told, { kind }) => checkSpace(told, kind)),
    checkOfEngine("memory", facts, (told, { kind }) => judgeMemory(told, kind)),
    checkOfEngine("cgroups", facts, (told) => checkCgroups(facts, told)),
    checkOfEngine("inotify", facts, () => checkInotify(platform)),
  ];
}

async function checkReach(facts: ContainerFacts, { title }: EngineKind): Promise<Outcome> {
  return (await facts.reach()) === "direct"
    ? pass(`${title} is on this machine: nodes are reached at their own addresses`)
    : pass(`${title} runs in a virtual machine: nodes are reached at ports of 127.0.0.1`);
}

function judgeStorage({ storageDriver }: EngineFacts, { advice }: EngineKind): Outcome {
  if (!["vfs", "devicemapper", "aufs"].includes(storageDriver)) return pass(storageDriver);
  return warn(
    `The storage driver ${storageDriver} is slow, because it copies whole images, or is no longer maintained.`,
    advice.storage,
  );
}

async function checkSpace({ rootFolder }: EngineFacts, { name }: EngineKind): Promise<Outcome> {
  const space = await statfs(rootFolder).catch(() => undefined);
  if (space === undefined) return skip(`Not checked: ${rootFolder || "its folder"} is not on this machine.`);
  const free = space.bavail * space.bsize;
  const text = `${rootFolder} has ${(Math.floor(free / 1e8) / 10).toFixed(1)} GB free`;
  if (free >= neededBytes) return pass(text);
  return fail(
    `${text}, but images and nodes may need ${neededBytes / 1e9} GB.`,
    `Free some space, for example with: ${name} system prune`,
  );
}

function judgeMemory({ memoryBytes }: EngineFacts, { title }: EngineKind): Outcome {
  const text = `${(memoryBytes / 1e9).toFixed(1)} GB`;
  if (memoryBytes >= usualMemoryBytes) return pass(text);
  return warn(
    `${title}'s machine has ${text} of memory, but a small cluster needs ${usualMemoryBytes / 1e9} GB.`,
    `Use fewer nodes, or give the virtual machine in which ${title} runs more memory.`,
  );
}

/** With cgroups 1, the nodes' systemd needs the tree that a host's systemd would have created. */
async function checkCgroups(facts: ContainerFacts, { cgroupVersion }: EngineFacts): Promise<Outcome> {
  const reach = await facts.reach().catch(() => undefined);
  const nodes = `nodes run ${chooseDistribution(defaultDistribution, cgroupVersion)} by default`;
  if (cgroupVersion === "2" || reach !== "direct") return pass(`Version ${cgroupVersion}: ${nodes}`);
  if (await isAccessible(systemdTree)) return pass(`Version 1, with a systemd hierarchy: ${nodes}`);
  return fail(
    `This machine has cgroups 1 without ${systemdTree}, which the nodes' systemd needs.`,
    `Create it: sudo mkdir ${systemdTree} && sudo mount -t cgroup -o none,name=systemd cgroup ${systemdTree}`,
  );
}

async function checkInotify(platform: NodeJS.Platform): Promise<Outcome> {
  if (platform !== "linux") return skip("Not checked: the engine runs in a virtual machine.");
  return judgeInotify(await readOwnText(inotifyFile).catch(() => undefined));
}

/** `instances` is the content of the kernel's file; undefined if it can't be read. */
export function judgeInotify(instances: string | undefined): Outcome {
  if (instances === undefined) return skip(`Not checked: cannot read ${inotifyFile}.`);
  const limit = Number(instances);
  if (limit >= usualInotifyInstances) return pass(`${limit} instances per user`);
  return warn(
    `${limit} inotify instances per user are enough for only about ${Math.floor(limit / 6)} nodes.`,
    "Allow more: sudo sysctl fs.inotify.max_user_instances=1024",
  );
}
