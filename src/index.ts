/**
 * The library: a cluster as an object, for tests and scripts. Only this file handles the caller's
 * input and its process; the code behind it receives everything as parameters.
 */

import { cloudKind } from "./backend/cloud/cloud-kind.ts";
import {
  type CloudBackendOptions,
  type CloudOptions,
  readCloudOptions,
} from "./backend/cloud/options.ts";
import { containerKind } from "./backend/container/container-kind.ts";
import {
  type ContainerBackendOptions,
  type ContainerOptions,
  readContainerOptions,
} from "./backend/container/options.ts";
import type { EngineName } from "./backend/container/engine/engine-kind.ts";
import type { Backend } from "./backend/contract.ts";
import { type VmBackendOptions, type VmOptions, readVmOptions } from "./backend/vm/options.ts";
import { vmKind } from "./backend/vm/vm-kind.ts";
import type { BackendSettings, ClusterBackend } from "./library/open-cluster.ts";
import { type RuntimeOptions, splitRuntimeOptions } from "./library/runtime.ts";

export type {
  Backend,
  ClusterBackend,
  CloudBackendOptions,
  ContainerBackendOptions,
  RuntimeOptions,
  VmBackendOptions,
};
export type {
  ClusterNode,
  NodeFetch,
  NodeFetchResult,
  NodeSendResult,
  NodeSend,
  NodeWait,
} from "./library/cluster-node.ts";
export { Cluster } from "./library/cluster.ts";
export type { ChaosRequest, ClusterChaos } from "./library/cluster-chaos.ts";
export type { ClusterFault } from "./library/cluster-fault.ts";
export type { Fault } from "./cluster/faults/faults.ts";
export type { FaultRequest } from "./platform/faults/fault-kinds.ts";
export type {
  Cancellation,
  EnterpriseWaitOptions,
  ExportOptions,
  LogsOptions,
  SaveOptions,
  WaitOptions,
} from "./library/call-options.ts";
export type { PowerOptions, StopOptions } from "./library/change-power-for-library.ts";
export type { Installation } from "./library/install-from-path.ts";
export type { ListedCluster } from "./library/list-clusters.ts";
export type {
  ClusterCommand,
  ClusterCommandResult,
  NodeCommand,
  NodeCommandResult,
} from "./library/cluster-node.ts";
export type {
  ClusterRequest,
  CopyClusterRequest,
  NewClusterRequest,
} from "./library/open-cluster.ts";
export type { Role, Variant } from "./model/cluster-record.ts";
export type { SnapshotRecord } from "./model/snapshot.ts";
export type { SavedLogs } from "./cluster/logs/save-logs.ts";
export type { MasterSync } from "./cluster/sync-checkout.ts";
export { ClusterError } from "./errors.ts";
export type { ErrorId } from "./errors.ts";
export type { Configuration } from "./platform/configuration/configuration.ts";
export type { CopyToMaster } from "./platform/configuration/install-configuration.ts";

/** Clusters on EC2 instances in one region. They end two hours after their launch, whatever happens to the program. */
export class CloudBackend implements ClusterBackend<CloudOptions> {
  readonly distribution: string;
  readonly #settings: BackendSettings<CloudOptions>;
  readonly #region: string;

  /**
   * Throws a `bad-usage` that lists every problem with the options. Looks for credentials when the
   * first cluster is created or looked up.
   */
  constructor(options: CloudBackendOptions & RuntimeOptions) {
    const { runtime, own } = splitRuntimeOptions(options, process);
    const { region, distribution, options: creation } = readCloudOptions(own);
    this.distribution = distribution;
    this.#settings = {
      runtime,
      options: creation,
      selinuxProblem: cloudKind.options.linuxDistribution.selinuxProblem,
    };
    this.#region = region;
  }

  settings(): BackendSettings<CloudOptions> {
    return this.#settings;
  }

  async open(signal: AbortSignal): Promise<Backend<CloudOptions>> {
    return cloudKind.open({ ...this.#settings.runtime, signal }, { region: this.#region });
  }
}

/** Clusters of containers on this computer. They exist until they are destroyed, or for a lifetime. */
export class ContainerBackend implements ClusterBackend<ContainerOptions> {
  readonly distribution: string;
  readonly #settings: BackendSettings<ContainerOptions>;
  readonly #engine: EngineName | undefined;

  /**
   * Throws a `bad-usage` that lists every problem with the options. Contacts the engine when the
   * first cluster is created or looked up.
   */
  constructor(options: ContainerBackendOptions & RuntimeOptions = {}) {
    const { runtime, own } = splitRuntimeOptions(options, process);
    const { options: creation } = readContainerOptions(own);
    this.distribution = creation.linuxDistribution;
    this.#settings = {
      runtime,
      options: creation,
      selinuxProblem: containerKind.options.linuxDistribution.selinuxProblem,
    };
    this.#engine = creation.engine;
  }

  settings(): BackendSettings<ContainerOptions> {
    return this.#settings;
  }

  async open(signal: AbortSignal): Promise<Backend<ContainerOptions>> {
    return containerKind.open({ ...this.#settings.runtime, signal }, { engine: this.#engine });
  }
}

/** Clusters of QEMU virtual machines on this computer. They exist until they are destroyed, or for a lifetime. */
export class VmBackend implements ClusterBackend<VmOptions> {
  readonly distribution: string;
  readonly #settings: BackendSettings<VmOptions>;

  /**
   * Throws a `bad-usage` that lists every problem with the options. Looks for QEMU when the first
   * cluster is created.
   */
  constructor(options: VmBackendOptions & RuntimeOptions = {}) {
    const { runtime, own } = splitRuntimeOptions(options, process);
    const { values, options: creation } = readVmOptions(own);
    this.distribution = values.linuxDistribution;
    this.#settings = {
      runtime,
      options: creation,
      selinuxProblem: vmKind.options.linuxDistribution.selinuxProblem,
    };
  }

  settings(): BackendSettings<VmOptions> {
    return this.#settings;
  }

  async open(signal: AbortSignal): Promise<Backend<VmOptions>> {
    signal.throwIfAborted();
    return vmKind.open({ ...this.#settings.runtime, signal }, {});
  }
}
