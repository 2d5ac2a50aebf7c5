import { resolve } from "node:path";
import type { SnapshotRecord } from "../model/snapshot.ts";
import { findNodes } from "../cluster/find-cluster.ts";
import type { FaultRequest } from "../platform/faults/fault-kinds.ts";
import { type Fault, endFaults, listFaults } from "../cluster/faults/faults.ts";
import type { PowerAction } from "../cluster/power.ts";
import { type SavedLogs, saveLogs } from "../cluster/logs/save-logs.ts";
import { createSnapshot, listSnapshots, restoreSnapshot } from "../cluster/snapshots.ts";
import { type MasterSync, syncCheckout } from "../cluster/sync-checkout.ts";
import { ClusterError } from "../errors.ts";
import { type Role, type Variant, nodeReference } from "../model/cluster-record.ts";
import { readArguments, required, text as textCheck } from "../model/read-arguments.ts";
import { readCheckout } from "../platform/checkout/checkout.ts";
import type { Configuration } from "../platform/configuration/configuration.ts";
import type { ConnectionPool } from "../ssh/connection/connection-pool.ts";
import { creationFiles } from "../store/creation-folder.ts";
import { accepted } from "../model/checked.ts";
import {
  type Cancellation,
  type EnterpriseWaitOptions,
  type ExportOptions,
  type LogsOptions,
  type SaveOptions,
  type WaitOptions,
  enterpriseWaitShape,
  exportShape,
  inLibraryWords,
  libraryCall,
  logsShape,
  readCancellation,
  saveShape,
  signalOf,
  waitShape,
} from "./call-options.ts";
import { type ChaosRequest, ClusterChaos, readChaosRequest } from "./cluster-chaos.ts";
import { type ClusterFault, beginForLibrary } from "./cluster-fault.ts";
import {
  type PowerOptions,
  type StopOptions,
  changePowerForLibrary,
} from "./change-power-for-library.ts";
import {
  type ClusterCommand,
  type ClusterCommandResult,
  type ClusterNode,
  readClusterCommand,
  runOnEach,
} from "./cluster-node.ts";
import { exportForLibrary, importForLibrary, saveForLibrary } from "./hand-over.ts";
import { installAtCreation } from "./install-at-creation.ts";
import {
  type Installation,
  baseConfigOf,
  installFromPath,
  readInstallation,
} from "./install-from-path.ts";
import { type ListedCluster, listForLibrary, printedCluster } from "./list-clusters.ts";
import {
  type ClusterBackend,
  type ClusterRequest,
  type OpenCluster,
  createForLibrary,
  findForLibrary,
} from "./open-cluster.ts";
import { ClusterState, assertOpen, checkedName } from "./cluster-state.ts";
import { waitForLibrary } from "./wait-for-library.ts";

/**
 * A cluster of machines on which to install and use the platform. Disposing of it destroys the cluster, so `await
 * using` does so at the end of its scope. Every operation fails with a ClusterError whose `id` identifies the problem.
 */
export class Cluster implements AsyncDisposable {
  readonly id: string;
  readonly variant: Variant;
  /** When the machines end by themselves; undefined if they have no fixed lifetime. */
  readonly expiresAt: Date | undefined;
  /** The folder on this computer that holds the cluster's key, its known hosts, and the logs of failed operations. */
  readonly directory: string;
  /** The one key that opens all nodes. The file exists only on the machine that created the cluster. */
  readonly sshKeyPath: string;
  /** A file on this computer, provided by the backend: the script that prints a node's private IPv4 address. */
  readonly ipDetectPath: string;
  readonly #state: ClusterState;
  readonly #connections: ClusterState["connections"];

  private constructor(open: OpenCluster) {
    assertOpen(open);
    const { record } = open;
    this.id = record.id;
    this.variant = record.variant;
    this.expiresAt = record.expiresAt;
    this.directory = record.directory;
    this.sshKeyPath = creationFiles(record.directory).privateKey;
    this.ipDetectPath = open.ipDetectPath;
    this.#state = new ClusterState(open);
    this.#connections = this.#state.connections;
  }

  get #open(): OpenCluster {
    return this.#state.open;
  }

  /**
   * Creates the machines of a cluster, and resolves when all of them accept logins. With `install`, also installs `platform`, and resolves when it is
   * ready. After a failure only logs in the state folder remain. Throws `bad-usage`, `cluster-exists`, `machine-failed`, `install-failed` and the like.
   */
  static async create<Options>(
    backend: ClusterBackend<Options>,
    given: ClusterRequest,
  ): Promise<Cluster> {
    // The caller may change it meanwhile.
    const request = Object(given) === given ? { ...given } : given;
    const cluster = new Cluster(
      await inLibraryWords(async () => createForLibrary(backend, request)),
    );
    await installAtCreation(cluster, request);
    return cluster;
  }

  /** The clusters of this backend, as the command `list` shows them, no matter who created them. */
  static async list<Options>(
    backend: ClusterBackend<Options>,
    options: Cancellation = {},
  ): Promise<readonly ListedCluster[]> {
    return await listForLibrary(backend, readCancellation(options));
  }

  /** Finds the cluster with this id, no matter who created it. Disposing of it destroys it too: hold it with `const` if it should live on. Throws `cluster-not-found`. */
  static async find<Options>(
    backend: ClusterBackend<Options>,
    clusterId: string,
    options: Cancellation = {},
  ): Promise<Cluster> {
    const signal = readCancellation(options);
    return new Cluster(
      await inLibraryWords(async () => findForLibrary(backend, clusterId, signal)),
    );
  }

  /**
   * Uses a cluster that another computer has exported: `text` is the result of `export` or of the command `export`. Logs in to the nodes first,
   * and stores nothing if anything is wrong. Throws `bad-usage`, `cluster-not-found`,
   * `host-key-changed`, `connection-failed`.
   */
  static async import<Options>(
    backend: ClusterBackend<Options>,
    text: string,
    options: Cancellation = {},
  ): Promise<Cluster> {
    const signal = readCancellation(options);
    return new Cluster(await inLibraryWords(async () => importForLibrary(backend, text, signal)));
  }

  /** Sorted by number. Throws `node-not-found` if the last master has ended. */
  get masters(): readonly [ClusterNode, ...ClusterNode[]] {
    const [first, ...others] = this.#withRole("master");
    if (first !== undefined) return [first, ...others];
    throw new ClusterError("node-not-found", `Cluster "${this.id}" has no master.`, {
      facts: { cluster: this.id },
    });
  }

  get agents(): readonly ClusterNode[] {
    return this.#withRole("agent");
  }

  get publicAgents(): readonly ClusterNode[] {
    return this.#withRole("public_agent");
  }

  #withRole(role: Role): readonly ClusterNode[] {
    return this.#state.nodes.filter((node) => node.role === role);
  }

  /**
   * The minimal configuration that the artifact needs, with this cluster's addresses and name servers. Merge it with
   * your own: `{ ...cluster.baseConfig, resolvers: ["10.0.0.2"] }`. The enterprise variant gets the superuser `admin`
   * with the password `admin`, and no license. For a cluster returned by `find`, throws if this computer could not log
   * in to the first master (`key-missing`, `connection-failed`).
   */
  get baseConfig(): Configuration {
    return baseConfigOf(this.#state.base);
  }

  /**
   * Installs the platform from an artifact on this computer; resolves when the installation has started on every node.
   * Throws `bad-usage`, `artifact-unreachable`, `artifact-invalid`, `variant-mismatch`, `configuration-refused`,
   * `install-failed` and the like; the nodes' logs are then in `directory`.
   */
  async installFromPath(installation: Installation): Promise<void> {
    const request = readInstallation(installation, this.#open);
    const signal = signalOf(request);
    const install = async (connections: ConnectionPool) =>
      installFromPath(this.#open, request, connections, signal);
    await inLibraryWords(async () => this.#connections.use(install));
  }

  /**
   * Resolves when the open source variant is ready: every installer has succeeded, every node's own check passes, every
   * master answers over HTTP, and all agents are registered. Throws `install-failed` or `machine-failed` as soon as the
   * cluster can no longer become ready, `deadline-passed`, or `bad-usage` for an enterprise cluster; the nodes' logs
   * are then in `directory`.
   */
  async waitForClusterOss(options: WaitOptions = {}): Promise<void> {
    await waitForLibrary(this.#open, this.#connections, {
      variant: "oss",
      ...readArguments(options, waitShape),
    });
  }

  /** Resolves when a platform without variants is ready: as `waitForClusterOss`, but a platform may have no web UI and no list of agents. */
  async waitForCluster(options: WaitOptions = {}): Promise<void> {
    await waitForLibrary(this.#open, this.#connections, {
      variant: "none",
      ...readArguments(options, waitShape),
    });
  }

  /**
   * Resolves when the enterprise variant is ready: as `waitForClusterOss`, and the superuser can log in. Throws
   * `login-refused` if the name or password is wrong.
   */
  async waitForClusterEnterprise(options: EnterpriseWaitOptions = {}): Promise<void> {
    const {
      superuserUsername = "admin",
      superuserPassword = "admin",
      ...wait
    } = readArguments(options, enterpriseWaitShape);
    this.#open.runtime.progress.hide(superuserPassword);
    const login = { username: superuserUsername, password: superuserPassword };
    await waitForLibrary(this.#open, this.#connections, {
      variant: "enterprise",
      login,
      ...wait,
    });
  }

  /**
   * Runs a command on several nodes at the same time, 64 at once, and resolves with what became of it on each. A node that can't be reached, or where
   * the command fails, doesn't stop the others. Throws `node-not-found`, `bad-usage`, or the reason of an aborted signal.
   */
  async run(command: ClusterCommand): Promise<readonly ClusterCommandResult[]> {
    const request = readClusterCommand(command);
    const found = new Set(
      findNodes(this.#open.record, request.nodes ?? ["all"]).map(nodeReference),
    );
    const chosen = this.#state.nodes.filter(({ reference }) => found.has(reference));
    return await runOnEach(chosen, request);
  }

  /**
   * Syncs tests and bootstrap files from a checkout of the platform's repository to all masters, or a platform's folder
   * to all nodes, all or nothing for each, and returns what was sent to each. `checkoutDir` is a path on this computer. Throws `bad-usage` (not a
   * checkout), `not-installed`, `transfer-failed`, `connection-failed`.
   */
  async sync(checkoutDir: string, options: Cancellation = {}): Promise<readonly MasterSync[]> {
    readArguments({ checkoutDir }, { checkoutDir: required(textCheck) });
    return await this.#state.call(options, async (work, { record }) => {
      const checkout = accepted(await readCheckout(resolve(checkoutDir), work.signal));
      return this.#connections.use(async (connections) =>
        syncCheckout({ ...work, connections }, record, checkout),
      );
    });
  }

  /** Saves the logs of all nodes that answer, and the machines' console logs, with known secrets masked. */
  async saveLogs(options: LogsOptions = {}): Promise<SavedLogs> {
    const { folder, ...others } = readArguments(options, logsShape);
    const { backend, record, runtime } = this.#open;
    const request = { cluster: record, folder: folder === undefined ? undefined : resolve(folder) };
    return await libraryCall(runtime, others, async (work) => saveLogs(work, backend, request));
  }

  /**
   * Returns a text with which another computer can use the cluster, until the cluster ends: `Cluster.import` and the command `import` read it. It holds the
   * private key. Clusters in the cloud only. Throws `bad-usage`, `key-missing`, and `machine-not-set-up` if age is needed but not installed.
   */
  async export(options: ExportOptions = {}): Promise<string> {
    const { recipients = [], ...others } = readArguments(options, exportShape);
    return await inLibraryWords(async () =>
      exportForLibrary(this.#open, recipients, signalOf(others)),
    );
  }

  /**
   * Shuts nodes down, by default all; with `force`, cuts their power. They keep their names, addresses, keys and disks. A command that runs on them
   * fails as `connection-failed`. Throws `node-not-found`, `deadline-passed`, and `bad-usage` in the cloud.
   */
  async stop(options: StopOptions = {}): Promise<void> {
    await this.#changePower("stop", options);
  }

  /** Boots stopped nodes and lets paused ones continue, by default all, also after a restart of this computer. Resolves when they accept logins. */
  async start(options: PowerOptions = {}): Promise<void> {
    await this.#changePower("start", options);
  }

  /** Stops nodes as `stop` does, and starts them again; in the cloud, lets their systems restart. */
  async restart(options: StopOptions = {}): Promise<void> {
    await this.#changePower("restart", options);
  }

  /** Freezes everything on nodes, by default all, without ending it. */
  async pause(options: PowerOptions = {}): Promise<void> {
    await this.#changePower("pause", options);
  }

  /** Lets paused nodes continue. Resolves when they accept logins. */
  async resume(options: PowerOptions = {}): Promise<void> {
    await this.#changePower("resume", options);
  }

  async #changePower(action: PowerAction, options: StopOptions): Promise<void> {
    this.#state.update(await changePowerForLibrary(this.#open, action, options));
  }

  /**
   * Saves the cluster under a name: file systems of containers; memory and disks of virtual machines. Throws `snapshot-exists`, `machine-failed`,
   * `capacity-lacking`; then there is no snapshot. Clusters in the cloud have none (`bad-usage`).
   */
  async snapshot(name: string, options: Cancellation = {}): Promise<void> {
    const named = { clusterId: this.id, name: checkedName(name) };
    await this.#state.call(options, async (work, { backend }) =>
      createSnapshot(work, backend, named),
    );
  }

  /**
   * Restores the cluster to its state at the time of the snapshot, and resolves when all nodes accept logins. Virtual machines then continue where they
   * were; containers boot their services, so wait for the cluster. Nodes keep their addresses, but get other ids: read `masters` and the like again.
   * Throws `snapshot-not-found` and `snapshot-unusable` before it touches anything.
   */
  async restore(name: string, options: Cancellation = {}): Promise<void> {
    const named = { clusterId: this.id, name: checkedName(name) };
    const record = await this.#state.call(options, async (work, { backend }) => {
      await this.#connections.reset();
      return restoreSnapshot(work, backend, named);
    });
    await this.#connections.reset();
    this.#state.update(record);
  }

  /**
   * Writes a snapshot of virtual machines or containers to a file, from which `Cluster.create` makes clusters on other computers, with `from`. The file
   * contains the secrets of the nodes and the keys that open them; only this user can read it. Throws `snapshot-not-found`, `snapshot-unusable`,
   * `capacity-lacking`, and `bad-usage` if the file can't be written; then there is no file.
   */
  async saveSnapshot(name: string, file: string, options: SaveOptions = {}): Promise<void> {
    const request = { name: checkedName(name), file, ...readArguments(options, saveShape) };
    await inLibraryWords(async () => saveForLibrary(this.#open, request));
  }

  /** The cluster's snapshots, oldest first. */
  async snapshots(options: Cancellation = {}): Promise<readonly SnapshotRecord[]> {
    return await this.#state.call(options, async ({ signal }, { backend }) =>
      listSnapshots(backend, this.id, signal),
    );
  }

  /**
   * Begins a fault, and resolves when it shows. The nodes heal it by themselves after `durationMs`, even if this program has ended; disposing of the result
   * heals it earlier. If it can't begin on all its nodes, none has it. Throws `bad-usage`, `node-not-found`, `machine-failed`, `remote-command-failed`.
   */
  async fault(request: FaultRequest & Cancellation): Promise<ClusterFault> {
    return await beginForLibrary(this.#open, request);
  }

  /** Begins faults at random, the same for the same seed, until the result is disposed of. Throws `bad-usage`; what fails later, the result throws. */
  chaos(request: ChaosRequest): ClusterChaos {
    return new ClusterChaos(readChaosRequest(request), this.#open);
  }

  /** The faults of all nodes that answer, also those that another program has begun. */
  async faults(options: Cancellation = {}): Promise<readonly Fault[]> {
    return await this.#state.call(options, async (work, { backend }) =>
      listFaults(work, backend, this.id),
    );
  }

  /** Heals all faults, and returns them. */
  async healFaults(options: Cancellation = {}): Promise<readonly Fault[]> {
    return await this.#state.call(options, async (work, { backend }) =>
      endFaults(work, backend, { clusterId: this.id }),
    );
  }

  /** Ends all machines and removes what belongs to them, snapshots included. Then a second call does nothing. Throws `cloud-failed` and the like. */
  async destroy(options: Cancellation = {}): Promise<void> {
    await this.#state.destroy(readCancellation(options));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.destroy();
  }

  /** What `console.log` shows. */
  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return printedCluster(this.id, this.#state.nodes);
  }
}
