import { resolve } from "node:path";
import type { ClusterBackend } from "./cluster-backend.ts";
import { ClusterError } from "../../errors.ts";
import { readCheckout } from "../../platform/checkout/checkout.ts";
import type { Configuration } from "../../platform/configuration/configuration.ts";
import { accepted } from "../../system/checked.ts";
import { creationFiles } from "../../system/files/creation-folder.ts";
import { ClusterNode } from "./cluster-node.ts";
import { installFromPath, keepEvidence } from "./install-from-path.ts";
import type { Installation } from "./install-from-path.ts";
import { openMaskedConnections } from "../connections/masked-connections.ts";
import { createForLibrary, findForLibrary } from "./open-cluster.ts";
import type { ClusterRequest, OpenCluster } from "./open-cluster.ts";
import type { Role, Variant } from "../../model/cluster-record.ts";
import { removeCluster } from "../remove-cluster.ts";
import { saveLogs } from "../logs/save-logs.ts";
import type { SavedLogs } from "../logs/save-logs.ts";
import { SharedConnections } from "./shared-connections.ts";
import { syncCheckout } from "../sync-checkout.ts";
import type { MasterSync } from "../sync-checkout.ts";
import { waitForCluster } from "../wait-for-cluster.ts";

/** What every operation takes. */
export interface Cancellation {
  /** Aborted, what is under way ends, and the signal's reason is thrown. */
  readonly cancelSignal?: AbortSignal;
}

export interface WaitOptions extends Cancellation {
  /** Milliseconds to wait at most (`deadline-passed`); default: an hour. */
  readonly timeoutMs?: number;
  /** Leaves out what this machine asks the masters' web servers, for clusters whose web UI can't be reached from here; default: false. */
  readonly skipHttpChecks?: boolean;
}

export interface EnterpriseWaitOptions extends WaitOptions {
  /** Default: `admin`. */
  readonly superuserUsername?: string;
  /** Default: `admin`. */
  readonly superuserPassword?: string;
}

const usualWaitMs = 60 * 60_000;

/**
 * A cluster of machines, to install the platform on and to use. Disposing of it destroys it, so `await using` does when its scope is left. All
 * that can go wrong is thrown as a ClusterError, whose `id` says what.
 */
export class Cluster implements AsyncDisposable {
  readonly id: string;
  readonly variant: Variant;
  /** When the machines end by themselves; undefined where they have no fixed lifetime. */
  readonly expiresAt: Date | undefined;
  /** The folder of this machine that keeps the cluster's key and known hosts, and the logs of what failed. */
  readonly directory: string;
  /** The one key that opens all nodes. On another machine than the creator's there is no such file. */
  readonly sshKeyPath: string;
  /** A file of this machine, given by the backend: the script that prints a node's private IPv4 address. */
  readonly ipDetectPath: string;
  readonly #open: OpenCluster;
  readonly #connections: SharedConnections;
  readonly #nodes: readonly ClusterNode[];
  readonly #state = { isDestroyed: false };

  private constructor(open: OpenCluster) {
    const { record, surroundings } = open;
    this.id = record.id;
    this.variant = record.variant;
    this.expiresAt = record.expiresAt;
    this.directory = record.directory;
    this.sshKeyPath = creationFiles(record.directory).privateKey;
    this.ipDetectPath = open.ipDetectPath;
    this.#open = open;
    this.#connections = new SharedConnections(() => openMaskedConnections(record, surroundings));
    const standing = record.nodes.filter((node) => node.state !== "ended");
    this.#nodes = standing.map((node) => new ClusterNode(node, this.#connections));
  }

  /**
   * Makes the machines of a cluster, on which nothing is installed yet, and resolves when all can be logged in to. On failure nothing is left but
   * logs in the state folder. Throws `bad-usage`, `no-credentials`, `cluster-exists`, `capacity-lacking`, `machine-failed` and the like.
   */
  static async create<Options>(backend: ClusterBackend<Options>, request: ClusterRequest): Promise<Cluster> {
    return new Cluster(await createForLibrary(backend, request));
  }

  /**
   * The cluster with this id, no matter who made it; `cluster-not-found` where there is none. Disposing of it destroys it as any other: hold it with
   * `const` where it is to live on.
   */
  static async find<Options>(
    backend: ClusterBackend<Options>,
    clusterId: string,
    { cancelSignal = neverAborted() }: Cancellation = {},
  ): Promise<Cluster> {
    return new Cluster(await findForLibrary(backend, clusterId, cancelSignal));
  }

  /** In the order of their numbers. Throws `node-not-found` where the last one has ended. */
  get masters(): readonly [ClusterNode, ...ClusterNode[]] {
    const [first, ...others] = this.#withRole("master");
    if (first !== undefined) return [first, ...others];
    throw new ClusterError("node-not-found", `Cluster "${this.id}" has no master.`, { facts: { cluster: this.id } });
  }

  get agents(): readonly ClusterNode[] {
    return this.#withRole("agent");
  }

  get publicAgents(): readonly ClusterNode[] {
    return this.#withRole("public_agent");
  }

  #withRole(role: Role): readonly ClusterNode[] {
    return this.#nodes.filter((node) => node.role === role);
  }

  /**
   * The least configuration that the artifact needs, with this cluster's addresses and name servers, to be merged with your own: `{
   * ...cluster.baseConfig, resolvers: ["10.0.0.2"] }`. Enterprise: superuser `admin` with the password `admin`, and no license. On a cluster
   * that was found it throws where the first master couldn't be logged in to (`key-missing`, `connection-failed`).
   */
  get baseConfig(): Configuration {
    const { base } = this.#open;
    if ("value" in base) return base.value;
    throw base.problem;
  }

  /**
   * Installs the platform from an artifact on this machine; resolves when the installation has started on every node. Throws `bad-usage`,
   * `artifact-unreachable`, `artifact-invalid`, `variant-mismatch`, `configuration-refused`, `install-failed` and the like; the nodes' logs are then
   * in `directory`.
   */
  async installFromPath(installation: Installation): Promise<void> {
    const signal = installation.cancelSignal ?? neverAborted();
    await this.#connections.use(async (connections) => installFromPath(this.#open, installation, connections, signal));
  }

  /**
   * Resolves when the open source variant is ready: every installer has ended well, every node's own check passes, every master answers over HTTP
   * and all agents are registered. Throws `install-failed` or `machine-failed` as soon as it can't become ready, `deadline-passed`, `bad-usage` for an
   * enterprise cluster; the nodes' logs are then in `directory`.
   */
  async waitForClusterOss(options: WaitOptions = {}): Promise<void> {
    await this.#wait("oss", { username: "", password: "" }, options);
  }

  /** The same for the enterprise variant, where the superuser must be able to log in too: `login-refused` if name or password is wrong. */
  async waitForClusterEnterprise(options: EnterpriseWaitOptions = {}): Promise<void> {
    const { superuserUsername = "admin", superuserPassword = "admin" } = options;
    this.#open.surroundings.progress.hide(superuserPassword);
    await this.#wait("enterprise", { username: superuserUsername, password: superuserPassword }, options);
  }

  async #wait(
    variant: Variant,
    login: { readonly username: string; readonly password: string },
    { timeoutMs = usualWaitMs, skipHttpChecks = false, cancelSignal = neverAborted() }: WaitOptions,
  ): Promise<void> {
    if (variant !== this.variant)
      throw new ClusterError("bad-usage", `Cluster "${this.id}" is of the variant ${this.variant}.`);
    const { backend, surroundings } = this.#open;
    const deadlineMs = surroundings.clock.now() + timeoutMs;
    const request = { clusterId: this.id, login, skipHttpChecks, deadlineMs };
    try {
      await waitForCluster(backend, request, surroundings, cancelSignal);
    } catch (error) {
      const tellsAll = error instanceof ClusterError && toldInFull.includes(error.id);
      if (!tellsAll && !cancelSignal.aborted)
        await this.#connections.use(async (connections) => keepEvidence(this.#open, connections));
      throw error;
    }
  }

  /**
   * Syncs tests and bootstrap files from a checkout of the platform's repository to all masters, each all or nothing, and tells per master what
   * was sent. `checkoutDir` is a path of this machine. Throws `bad-usage` (no checkout), `not-installed`, `transfer-failed`, `connection-failed`.
   */
  async sync(
    checkoutDir: string,
    { cancelSignal = neverAborted() }: Cancellation = {},
  ): Promise<readonly MasterSync[]> {
    const { record, surroundings } = this.#open;
    const checkout = accepted(await readCheckout(resolve(checkoutDir)));
    return await this.#connections.use(async (connections) =>
      syncCheckout(record, checkout, { connections, progress: surroundings.progress }, cancelSignal),
    );
  }

  /**
   * Saves the logs of all nodes that answer, and the machines' console output, with known secrets masked. `folder` is a path of this machine; default:
   * a new one in `directory`.
   */
  async saveLogs({
    folder,
    cancelSignal = neverAborted(),
  }: Cancellation & { readonly folder?: string } = {}): Promise<SavedLogs> {
    const { backend, record, surroundings } = this.#open;
    const chosen = folder === undefined ? undefined : resolve(folder);
    return await saveLogs(backend, { cluster: record, folder: chosen }, surroundings, cancelSignal);
  }

  /** Ends all machines and removes what belongs to them; resolves when they are gone. The second time it does nothing. Throws `cloud-failed` and the like. */
  async destroy({ cancelSignal = neverAborted() }: Cancellation = {}): Promise<void> {
    if (this.#state.isDestroyed) return;
    await this.#connections[Symbol.asyncDispose]();
    await removeCluster(this.#open.backend, this.#open.record, cancelSignal);
    this.#state.isDestroyed = true;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.destroy();
  }
}

/** Errors to which the nodes' logs add nothing. */
const toldInFull: readonly string[] = ["cluster-not-found", "key-missing", "login-refused"];

const neverAborted = (): AbortSignal => new AbortController().signal;
