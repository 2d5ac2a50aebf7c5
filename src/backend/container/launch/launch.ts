import { buffer } from "node:stream/consumers";
import { type Counts, nodeHostname, roles, webPortsOf } from "../../../model/cluster-record.ts";
import { parseWebUi } from "../../../model/parse-values.ts";
import { mapConcurrently } from "../../../system/concurrency.ts";
import type { KeyPair } from "../../../ssh/keys.ts";
import { tarStream, textFile } from "../../../system/files/tar.ts";
import type { NodeName } from "../../contract.ts";
import { clusterExists } from "../../shared/machine-errors.ts";
import { runCommand } from "../../../references.ts";
import { isNameTaken } from "../engine/engine-errors.ts";
import type { EngineKind } from "../engine/engine-kind.ts";
import { type Engine, removalCommand } from "../engine/engine.ts";
import { type Limits, limitWords } from "../limits.ts";
import {
  type LabelValues,
  containerName,
  labelArguments,
  nodeVolumeLabel,
  settingsText,
  type NodeSettings,
} from "../records/labels.ts";
import { addressesIn } from "./create-network.ts";
import { endSettings, endStatus, noteEnd } from "./self-reboot.ts";
import { type SystemFlags, nodeState } from "./system-flags.ts";

const atOnce = 6;

/** Everything that the nodes of one cluster have in common. */
export interface LaunchPlan {
  readonly clusterId: string;
  readonly counts: Counts;
  readonly options: NodeSettings;
  readonly image: string;
  readonly network: string;
  /** The address of each node in the network. */
  readonly addressOf: (node: NodeName) => string;
  readonly labels: LabelValues;
  readonly system: SystemFlags;
}

/**
 * Creates the first node, which claims the cluster's id: of two creates, the engine gives the name to one only. The
 * other fails with `cluster-exists`.
 */
export async function createFirstNode(engine: Engine, plan: LaunchPlan): Promise<CreatedNode> {
  const [first] = nodesOf(plan.counts);
  if (first === undefined) throw new RangeError("A cluster without nodes");
  return { ...first, id: await createNode(engine, plan, first) };
}

/** Starts the first node; creates and starts all others. */
export async function launchNodes(
  engine: Engine,
  { plan, first, identityOf, onStart }: Launch,
  signal: AbortSignal,
): Promise<void> {
  const begin = async (id: string, node: NodeName): Promise<void> =>
    beginNode(engine, { id, identity: await identityOf(node), onStart }, signal);
  const [, ...others] = nodesOf(plan.counts);
  const tasks = [
    async () => begin(first.id, first),
    ...others.map((node) => async () => begin(await createNode(engine, plan, node), node)),
  ];
  await mapConcurrently(tasks, atOnce, async (task) => task(), signal);
}

/** Starts a container that has been created, with its identity. */
export async function beginNode(
  engine: Engine,
  {
    id,
    identity,
    onStart,
  }: Pick<Launch, "onStart"> & { readonly id: string; readonly identity: Uint8Array },
  signal: AbortSignal,
): Promise<void> {
  await engine.change({ words: ["cp", "-", `${id}:/`], stdin: identity });
  signal.throwIfAborted();
  await engine.change({ words: ["start", id] });
  onStart(id);
}

export interface Launch {
  readonly plan: LaunchPlan;
  readonly first: CreatedNode;
  /** Returns an archive that is unpacked at the node's root before it starts. */
  readonly identityOf: (node: NodeName) => Promise<Uint8Array>;
  readonly onStart: (id: string) => void;
}

export interface CreatedNode extends NodeName {
  readonly id: string;
}

export const nodesOf = (counts: Counts): readonly NodeName[] =>
  roles.flatMap((role) => Array.from({ length: counts[role] }, (_, index) => ({ role, index })));

export async function createNode(
  engine: Engine,
  plan: LaunchPlan,
  node: NodeName,
): Promise<string> {
  try {
    return await engine.change({ words: createWords(engine.kind, plan, node) });
  } catch (error) {
    if (!isNameTaken(error)) throw error;
    const removal = `${removalCommand(engine, plan.clusterId)}\nIf there is no such cluster, ${runCommand("doctor", "run")}: it names the container that has its name.`;
    throw clusterExists(plan.clusterId, { removal, cause: error });
  }
}

function createWords(
  { consoleWords, ownVolumeWord }: EngineKind,
  plan: LaunchPlan,
  { role, index }: NodeName,
): readonly string[] {
  const { options, system } = plan;
  const [program = "", ...rest] = system.command;
  const hostname = nodeHostname({ role, index });
  return [
    "create",
    `--name=${containerName(plan.clusterId, { role, index })}`,
    ...labelArguments({
      ...plan.labels,
      settings: settingsText(options),
      role,
      index: String(index),
    }),
    `--hostname=${hostname}`,
    `--network=${plan.network}`,
    `--network-alias=${hostname}`,
    `--ip=${plan.addressOf({ role, index })}`,
    ...(plan.labels.platformAddress === undefined
      ? []
      : overlaySettings.map((setting) => `--sysctl=${setting}`)),
    ...(plan.labels.offline === undefined ? [] : [`--dns=${noNameServer}`]),
    // These override the image's own settings.
    "--user=0:0",
    `--entrypoint=${program}`,
    ...system.words,
    // A container engine inside a node can't put its overlay layers on top of ours.
    ownVolumeWord("/var/lib/docker", `${nodeVolumeLabel}=${plan.labels.creationId}`),
    ...consoleWords,
    ...options.customVolumes.map((volume) => `--volume=${volume}`),
    ...sharedMemory(options.limits, system),
    ...limitWords(options.limits),
    plan.image,
    ...rest,
    ...offlineWords(plan),
  ];
}

/** Nobody has this address. Docker would otherwise ask this computer's name servers for the nodes. */
const noNameServer = "192.0.2.53";

/** The arguments of start-system.sh for a node that is offline. */
function offlineWords(plan: LaunchPlan): readonly string[] {
  const { offline, range } = plan.labels;
  if (offline === undefined) return [];
  if (range === undefined)
    throw new TypeError("Nobody knows the addresses of a network that leads nowhere");
  return ["start-system", ...addressesIn(range, 0), ...answeringPorts(plan).map(String)];
}

/**
 * For nodes with a network over the engine's (see `join-network.sh`): the engine's network doesn't
 * lead to addresses of the other one, and only root uses the lower ports, which engines leave to
 * everyone.
 */
const overlaySettings = [
  "net.ipv4.conf.all.arp_ignore=1",
  "net.ipv4.ip_unprivileged_port_start=1024",
] as const;

const units: Readonly<Record<string, number>> = {
  "": 1,
  b: 1,
  k: 1024,
  m: 1024 ** 2,
  g: 1024 ** 3,
  t: 1024 ** 4,
};

/**
 * Half of the node's memory, as on real machines. Engines give applications 64 MB. Memory is taken
 * only when it is used.
 */
function sharedMemory({ memory = "" }: Limits, { memoryBytes }: SystemFlags): readonly string[] {
  const [, number = "0", unit = ""] = /^(\d+)([bkmgt]?)$/i.exec(memory) ?? [];
  const limit = Number(number) * (units[unit.toLowerCase()] ?? 0) || Infinity;
  const bytes = Math.floor(Math.min(limit, memoryBytes || Infinity) / 2);
  return Number.isFinite(bytes) ? [`--shm-size=${bytes}`] : [];
}

/** The ports at which this computer may ask. */
function answeringPorts({ labels }: LaunchPlan): readonly number[] {
  const { http, https } = webPortsOf(parseWebUi(labels.webUi));
  return [...new Set([22, http, https])];
}

/** Keys that a node gets before it starts, so that host key checking is strict from the very first connection. */
export interface Identity {
  /** OpenSSH's format, ed25519. */
  readonly hostKey: KeyPair;
  /** An `authorized_keys` line. */
  readonly publicKey: string;
  /** More files of the node. A folder ends with `/` and comes before what is in it. */
  readonly files?: readonly IdentityFile[];
}

export interface IdentityFile {
  readonly name: string;
  readonly mode: number;
  readonly text: string;
}

/** Returns the file with the names of all nodes, and the addresses by which they know each other. */
export const hostsFiles = (
  nodes: readonly (NodeName & { readonly address: string })[],
): readonly IdentityFile[] => [
  { name: `${nodeState.slice(1)}/`, mode: 0o755, text: "" },
  {
    name: `${nodeState.slice(1)}/hosts`,
    mode: 0o644,
    text: nodes.map((node) => `${node.address} ${nodeHostname(node)}\n`).join(""),
  },
];

/**
 * What `/etc/sysctl.d` may set when a node boots. The rest belongs to the computer, whose settings
 * a privileged container would change.
 */
const ownSettings =
  "net fs/mqueue kernel/domainname kernel/msgmax kernel/msgmnb kernel/msgmni kernel/sem kernel/shmall kernel/shmmax kernel/shmmni";
const sysctl = `/lib/systemd/systemd-sysctl ${ownSettings.replaceAll(/\S+/g, "--prefix=$&")}`;

/** Root's service manager would delay each login. */
const unitChanges = {
  "systemd-sysctl.service": `[Service]\nExecStart=\nExecStart=-${sysctl}\n`,
  "user@0.service": "[Unit]\nConditionVirtualization=!container\n",
};

const dropIn = (unit: string, text: string): readonly IdentityFile[] => [
  { name: `etc/systemd/system/${unit}.d/`, mode: 0o755, text: "" },
  { name: `etc/systemd/system/${unit}.d/cluster-e2e.conf`, mode: 0o644, text },
];

/**
 * Returns an archive to unpack at the node's root. It disables units that a node does without, and cloud-init, if the
 * image has it, because cloud-init would create other host keys.
 */
export async function identityArchive(
  { hostKey, publicKey, files: more = [] }: Identity,
  nowMs: number,
): Promise<Uint8Array> {
  const files = [
    { name: "etc/ssh/ssh_host_ed25519_key", mode: 0o600, text: hostKey.privateKey },
    { name: "etc/ssh/ssh_host_ed25519_key.pub", mode: 0o644, text: `${hostKey.publicKey}\n` },
    { name: "root/.ssh/", mode: 0o700, text: "" },
    { name: "root/.ssh/authorized_keys", mode: 0o600, text: `${publicKey.trim()}\n` },
    { name: "etc/cloud/cloud-init.disabled", mode: 0o644, text: "" },
    ...Object.entries(unitChanges).flatMap(([unit, text]) => dropIn(unit, text)),
    ...Object.entries(endStatus).flatMap(([unit, status]) =>
      dropIn(unit, endSettings(unit, status)),
    ),
    noteEnd,
    ...more,
  ];
  return buffer(tarStream(files.map((file) => textFile({ ...file, modifiedMs: nowMs }))));
}
