import { access, rm } from "node:fs/promises";
import { ClusterError } from "../../errors.ts";
import { commandName, optionName, runCommand } from "../../references.ts";
import {
  type ClusterRecord,
  type NodeRecord,
  nodeHostname,
  nodeReference,
} from "../../model/cluster-record.ts";
import { poll } from "../../system/retry.ts";
import { readBootId } from "../../system/processes/process-identity.ts";
import { type Clock, type Runtime, passedMs } from "../../system/runtime.ts";
import { ruleOf, waits } from "../../system/waits.ts";
import type { Power } from "../power.ts";
import { lockMachines } from "../shared/lock-machines.ts";
import { type ClusterFacts, machinesOf, writeClusterFacts } from "./cluster-facts.ts";
import { assertLayersUnchanged } from "./images/base-layers.ts";
import { assertBootsAgain } from "./machines/boot-problem.ts";
import { readOwnCluster, startMachines } from "./machines/launch.ts";
import { endMachines, isRunning, machineFiles } from "./machines/machine-process.ts";
import {
  makeSocketsFolder,
  networkFiles,
  removeSockets,
  socketPath,
  socketsFolder,
} from "./machines/private-network.ts";
import { askEach } from "./qemu/ask-each.ts";
import { runOnMonitor } from "./qemu/monitor.ts";
import type { Qemu } from "./qemu/qemu.ts";

/**
 * Ends, starts and pauses single machines. Each starts again from its own disk, at its own place in
 * the private network.
 */
export function vmPower(qemu: Qemu, runtime: Runtime): Power {
  const { clock } = runtime;
  const tell = async (
    { directory }: ClusterRecord,
    nodes: readonly NodeRecord[],
    execute: string,
    signal: AbortSignal,
  ): Promise<void> => {
    await using _ = await lockMachines({ ...runtime, signal }, directory);
    await askEach(runtime, nodes, async (node) =>
      runOnMonitor(machineFiles(directory, node).folder, [{ execute }], signal),
    );
  };
  return {
    stopsClocks: true,
    assertBoots: async ({ directory }, node) => {
      const files = machineFiles(directory, node);
      const machine = { files, hostname: nodeHostname(node), name: nodeReference(node) };
      await assertBootsAgain(machine, qemu.architecture, clock);
    },
    pause: async (cluster, nodes, signal) => tell(cluster, nodes, "stop", signal),
    resume: async (cluster, nodes, signal) => tell(cluster, nodes, "cont", signal),
    shutDown: async (cluster, nodes, signal) => {
      const press = async (pressed: readonly NodeRecord[]): Promise<void> =>
        tell(cluster, pressed, "system_powerdown", signal);
      await press(nodes);
      await untilOff({ cluster, nodes, press }, clock, signal);
    },
    cutPower: async ({ directory }, nodes, signal) => {
      await using _ = await lockMachines({ ...runtime, signal }, directory);
      await endMachines(
        nodes.map((node) => machineFiles(directory, node)),
        clock,
        signal,
      );
    },
    start: async ({ directory }, nodes, signal) => {
      await using _ = await lockMachines({ ...runtime, signal }, directory);
      await startAgain(qemu, { directory, nodes, runtime }, signal);
    },
  };
}

interface ShutDown {
  readonly cluster: ClusterRecord;
  readonly nodes: readonly NodeRecord[];
  /** Presses the power buttons of these nodes. */
  readonly press: (nodes: readonly NodeRecord[]) => Promise<void>;
}

/** Throws `deadline-passed` if a node doesn't shut down. */
async function untilOff(
  { cluster, nodes, press }: ShutDown,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const pauseMs = waits.powerButton.pauseMs();
  const seen = { running: nodes, pressAtMs: passedMs(clock) + pauseMs };
  const look = async (): Promise<true | undefined> => {
    const found = await Promise.all(
      nodes.map(async (node) => isRunning(machineFiles(cluster.directory, node))),
    );
    seen.running = nodes.filter((_, index) => found[index]);
    if (seen.running.length === 0) return true;
    if (passedMs(clock) < seen.pressAtMs) return undefined;
    seen.pressAtMs = passedMs(clock) + pauseMs;
    // One that has ended meanwhile has no monitor.
    await press(seen.running).catch(() => signal.throwIfAborted());
    return undefined;
  };
  const rule = { ...ruleOf(waits.shutDown, clock), seen: () => seen.running.length };
  if ((await poll(look, rule, signal)) === true) return;
  const left = seen.running.map(nodeReference);
  throw new ClusterError("deadline-passed", `${left.join(", ")} did not shut down in time.`, {
    hint: `Stop them with ${optionName("force")}, or see the logs for what they wait for.`,
    facts: { cluster: cluster.id, nodes: left },
  });
}

interface Start {
  readonly directory: string;
  readonly nodes: readonly NodeRecord[];
  readonly runtime: Runtime;
}

async function startAgain(
  qemu: Qemu,
  { directory, nodes, runtime }: Start,
  signal: AbortSignal,
): Promise<void> {
  const { facts } = await readOwnCluster(directory);
  const machines = machinesOf(
    facts,
    "did not record how to start machines again",
    "Create it again.",
  );
  const lives = await Promise.all(
    facts.nodes.map(async (node) => isRunning(machineFiles(directory, node))),
  );
  const wanted = new Set(nodes.map(({ id }) => id));
  const idle = facts.nodes.filter(({ id }, place) => wanted.has(id) && lives[place] === false);
  if (idle.length === 0) return;
  await assertLayersUnchanged(facts, signal);
  const places = idle.map((node) => facts.nodes.indexOf(node));
  const hasNetwork = await isRunning(networkFiles(directory));
  if (!hasNetwork) {
    if (lives.includes(true)) throw networkGone(facts);
    await removeSockets(directory);
  }
  const folder = hasNetwork
    ? await connectable(directory, places, facts)
    : await makeSocketsFolder(directory);
  // What a killed QEMU left would count as the new one's.
  await Promise.all(
    idle.map(async (node) => rm(machineFiles(directory, node).pid, { force: true })),
  );
  const bootId = await readBootId();
  await startMachines(
    qemu,
    {
      directory,
      facts: { ...facts, bootId },
      options: machines,
      accelerator: machines.accelerator,
      isSandboxed: machines.isSandboxed,
      sockets: { folder, count: facts.nodes.length },
      clock: runtime.clock,
      isOfTemplate: machines.template !== undefined,
      again: { places, hasNetwork },
    },
    {},
    signal,
  );
  await writeClusterFacts(directory, { ...(await readOwnCluster(directory)).facts, bootId });
}

/** The folder of the running network's sockets. A cleaner of temporary files may have removed them. */
async function connectable(
  directory: string,
  places: readonly number[],
  facts: ClusterFacts,
): Promise<string> {
  const folder = await socketsFolder(directory);
  const paths = places.map((place) => socketPath({ folder, count: facts.nodes.length }, place));
  try {
    await Promise.all(paths.map(async (path) => access(path)));
    return folder;
  } catch (cause) {
    throw networkGone(facts, cause);
  }
}

const networkGone = ({ clusterId }: ClusterFacts, cause?: unknown): ClusterError =>
  new ClusterError(
    "engine-failed",
    `The private network of cluster "${clusterId}" accepts no more machines.`,
    {
      hint: `Restart the whole cluster: ${runCommand("stop", "run")}, then ${commandName("start")}.`,
      facts: { cluster: clusterId },
      cause,
    },
  );
