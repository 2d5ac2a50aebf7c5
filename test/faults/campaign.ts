/** All faults of all backends, each with the world in which it is injected. */
import type { ArgumentWatch } from "./argument-watch.ts";
import type { Fault, World } from "./fault.ts";
import { runFault, type Verdict } from "./run-fault.ts";
import { artifactFaults } from "./table/artifact-faults.ts";
import { chaosFaults } from "./table/chaos-faults.ts";
import { clusterFaults } from "./table/cluster-faults.ts";
import { commandFaults } from "./table/command-faults.ts";
import { fileFaults } from "./table/file-faults.ts";
import { folderFaults } from "./table/folder-faults.ts";
import { containerFileFaults } from "./table/container-file-faults.ts";
import { copyFaults } from "./table/copy-faults.ts";
import { templateFaults } from "./table/template-faults.ts";
import { testerFaults } from "./table/tester-faults.ts";
import { upgradeFaults } from "./table/upgrade-faults.ts";
import { computerFaults } from "./table/computer-faults.ts";
import { engineFaults } from "./table/engine-faults.ts";
import { lastingApiFaults } from "./table/lasting-api-faults.ts";
import { libraryFaults } from "./table/library-faults.ts";
import { machineFaults } from "./table/machine-faults.ts";
import { nodeFaults } from "./table/node-faults.ts";
import { lifetimeFaults } from "./table/lifetime-faults.ts";
import { onceFaults } from "./table/once-faults.ts";
import { passingApiFaults } from "./table/passing-api-faults.ts";
import { powerFaults } from "./table/power-faults.ts";
import { podmanFaults } from "./table/podman-faults.ts";
import { qemuFaults } from "./table/qemu-faults.ts";
import { rollBackFaults } from "./table/roll-back-faults.ts";
import { shardFaults } from "./table/shard-faults.ts";
import { saveFaults } from "./table/save-faults.ts";
import { ContainerWorld } from "./worlds/container-world.ts";
import { VmWorld } from "./worlds/vm-world.ts";
import { CloudWorld } from "./worlds/cloud-world.ts";

export interface CampaignFault {
  readonly name: string;
  readonly place: string;
  /** The approximate duration. */
  readonly seconds: number;
  /** Why it cannot be injected on this machine. */
  readonly lack: string | undefined;
  readonly play: (watch: ArgumentWatch) => Promise<Verdict>;
}

const usualSeconds = 4;

export const campaign: readonly CampaignFault[] = [
  ...inWorld("cloud", CloudWorld.open, [
    ...passingApiFaults,
    ...lastingApiFaults,
    ...commandFaults,
    ...upgradeFaults,
    ...folderFaults,
    ...clusterFaults,
    ...libraryFaults,
    ...rollBackFaults,
    ...nodeFaults,
    ...machineFaults,
    ...artifactFaults,
    ...computerFaults,
    ...onceFaults.cloud,
    ...powerFaults.cloud,
    ...testerFaults.cloud,
    ...chaosFaults.cloud,
  ]),
  ...inWorld("container", ContainerWorld.open, [
    ...engineFaults,
    ...copyFaults,
    ...containerFileFaults,
    ...onceFaults.container,
    ...shardFaults,
    ...lifetimeFaults.container,
    ...powerFaults.container,
    ...testerFaults.container,
    ...chaosFaults.container,
  ]),
  ...inWorld("podman", ContainerWorld.openPodman, podmanFaults),
  ...inWorld("vm", VmWorld.open, [
    ...qemuFaults,
    ...fileFaults,
    ...onceFaults.vm,
    ...saveFaults,
    ...lifetimeFaults.vm,
    ...powerFaults.vm,
    ...testerFaults.vm,
    ...chaosFaults.vm,
  ]),
  ...inWorld("vm", VmWorld.openWithTemplates, templateFaults),
];

function inWorld<Bench extends World>(
  backend: string,
  open: () => Promise<Bench>,
  faults: readonly Fault<Bench>[],
): readonly CampaignFault[] {
  return faults.map((fault) => ({
    name: `${backend}/${fault.name}`,
    place: fault.place,
    seconds: fault.seconds ?? usualSeconds,
    lack: fault.lack,
    play: async (watch) => runFault(fault, open, watch),
  }));
}
