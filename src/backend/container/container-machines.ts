import { rm } from "node:fs/promises";
import { join } from "node:path";
import { type ClusterRecord, type NodeRecord, countsText } from "../../model/cluster-record.ts";
import { type Runtime, passedMs } from "../../system/runtime.ts";
import { version } from "../../version.ts";
import type {
  CopyRequest,
  CreationFolder,
  CreationRemains,
  CreationRequest,
  FirstLogin,
  NamedText,
  NodeShell,
} from "../contract.ts";
import { hostKeyPerNode } from "../shared/first-boot.ts";
import { endAfter } from "../shared/lifetimes.ts";
import { machineFailed } from "../shared/machine-errors.ts";
import { runCommand } from "../../references.ts";
import type { DescribedNetwork, EngineFacts, Reach } from "./engine/engine-kind.ts";
import { type Way, reachText } from "./engine/find-reach.ts";
import { engineAddress, ownInterfaces, passageThrough } from "./engine/passage.ts";
import { type Engine, removalCommand } from "./engine/engine.ts";
import { createNetwork } from "./launch/create-network.ts";
import { type RunningNode, rebootPermits } from "./launch/self-reboot.ts";
import type { CreationName, LabelValues } from "./records/labels.ts";
import { writeEngineNote } from "./records/engine-note.ts";
import { describeContainers, inspect, reachOf, readNodes } from "./records/read-containers.ts";
import { assertIdIsFree, readInventory, toClusters } from "./records/records.ts";
import { removeWithSnapshots, stopCreation } from "./remove-creation.ts";
import { consoleOutputs } from "../shared/node-scripts.ts";

export interface MachinesPlan {
  readonly engine: Engine;
  /** The folder of this machine's creations with the engine. */
  readonly root: string;
  readonly request: Pick<CopyRequest, "clusterId" | "lifetimeMs">;
  /** Whether an earlier creation of this id left something that is removed before the id is claimed. */
  readonly hasLeftovers: boolean;
}

/** After this long without a login, and again, a node is asked whether its own sshd answers there. */
const silentMs = 20_000;
/** A refused connection costs nothing; a try through the engine starts a process there. */
const tryEveryMs: Readonly<Record<Reach, number>> = { direct: 100, engine: 500 };

/** On a busy computer, nodes boot for minutes. */
const mostSilences = 9;

/** The facts in the labels of a cluster's network. */
export interface ClusterFacts extends Pick<
  CreationRequest<never>,
  "counts" | "variant" | "distribution" | "webUi" | "platform"
> {
  /** Whether nodes reach each other and nothing else. */
  readonly isOffline: boolean;
}

interface NewNetworkFacts {
  readonly way: Way["reach"];
  /** The engine's own network. */
  readonly usual: DescribedNetwork;
  /** Ranges that the nodes reach in another way. */
  readonly known?: readonly string[];
}

/** For a node's answer whether it can be started again. Without one it works too, so nothing waits long for it. */
const rebootLimitMs = 60_000;

/** The part of a creation that is the same whether its containers are new or copied from a snapshot. See Creation. */
export abstract class ContainerMachines {
  protected readonly plan: MachinesPlan;
  protected readonly runtime: Runtime;
  protected readonly hostKeys = hostKeyPerNode();
  readonly #started: string[] = [];
  readonly #allowReboot: ReturnType<typeof rebootPermits>;
  /** One for each node that has been logged in to. */
  readonly #permits: Promise<void>[] = [];
  /** `name`: set once something was requested. `expiresAt`: undefined if the cluster has no lifetime. */
  protected readonly begun: {
    name?: CreationName;
    expiresAt?: Date | undefined;
    /** The interface of its network. */
    bridge?: unknown;
  } = {};
  /**
   * Whether a login has succeeded, or was missed; since when there was none, and how often and with
   * what answer a node was asked.
   */
  readonly #silence: { isOver: boolean; sinceMs?: number; count: number; hasAnswered: boolean } = {
    isOver: false,
    count: 0,
    hasAnswered: false,
  };
  /** All nodes that the engine has ever shown, by their ids. */
  readonly #seen = new Map<string, NodeRecord>();

  constructor(plan: MachinesPlan, runtime: Runtime) {
    this.plan = plan;
    this.runtime = runtime;
    this.#allowReboot = rebootPermits({ engine: plan.engine, progress: runtime.progress });
  }

  protected abstract get facts(): ClusterFacts;
  protected abstract get reach(): Reach;
  protected abstract get engineFacts(): Pick<EngineFacts, "storageDriver" | "hasUsualRanges">;

  /** From here on, something may be left of the creation, and its lifetime has begun. */
  protected async begin({ creationId, directory }: CreationFolder): Promise<CreationName> {
    const { engine, request } = this.plan;
    const name = { clusterId: request.clusterId, creationId };
    this.begun.name = name;
    this.begun.expiresAt = endAfter(request.lifetimeMs, this.runtime.clock);
    const address = engineAddress(engine.kind, this.runtime.environment);
    const { storageDriver } = this.engineFacts;
    await writeEngineNote(directory, { address, storageDriver });
    return name;
  }

  /** The labels of the network and of all nodes. */
  protected labelsOf(name: CreationName, reach: Reach): LabelValues {
    const { counts, variant, distribution, webUi, platform, isOffline } = this.facts;
    const { expiresAt } = this.begun;
    const known = {
      ...name,
      counts: countsText(counts),
      variant,
      distribution,
      reach,
      createdBy: version,
    };
    return {
      ...known,
      ...(webUi !== undefined && { webUi }),
      ...(platform !== undefined && { platform }),
      ...(isOffline && { offline: "yes" }),
      ...(expiresAt !== undefined && { expiresAt: expiresAt.toISOString() }),
    };
  }

  /**
   * Creates the cluster's network, in which addresses can be chosen, and resolves with its range.
   * Where nothing shows yet whether the engine is here, it probably is if it was not chosen by the
   * user, and the bridge of its own network is here.
   */
  protected async createNetwork(
    network: CreationName & { readonly labels: LabelValues },
    { way, usual, known = [] }: NewNetworkFacts,
    signal: AbortSignal,
  ): Promise<string> {
    const { engine } = this.plan;
    const mayBeElsewhere =
      way === "unknown" &&
      engineAddress(engine.kind, this.runtime.environment) === "" &&
      typeof usual.bridge === "string" &&
      ownInterfaces().has(usual.bridge);
    const hasUsualRanges = this.engineFacts.hasUsualRanges && (way === "direct" || mayBeElsewhere);
    const ranges = { hasUsualRanges, mayBeElsewhere, usual };
    const { range, bridge } = await createNetwork(
      engine,
      { ...network, ...ranges, reach: this.reach },
      known,
      signal,
    );
    this.begun.bridge = bridge;
    return range;
  }

  protected async assertLeftoversAreGone(signal: AbortSignal): Promise<void> {
    const { engine, request, root, hasLeftovers } = this.plan;
    if (!hasLeftovers) return;
    const { clusterId } = request;
    assertIdIsFree(engine, await readInventory(engine, { clusterId }, root, signal), {
      clusterId,
      leaving: [],
    });
  }

  /** Starts the containers with the function, which reports the id of each. */
  protected async startContainers(
    start: (onStart: (id: string) => void) => Promise<void>,
  ): Promise<void> {
    using step = this.runtime.progress.start("Start containers");
    try {
      await start((id) => void this.#started.push(id));
    } catch (error) {
      await this.forgetRights();
      throw error;
    }
    step.done();
  }

  async look(signal: AbortSignal): Promise<ClusterRecord> {
    const started = { names: this.#started, kind: "container" } as const;
    const cluster = this.#read(await inspect(this.plan.engine, started, signal));
    await this.#warnIfSilent(cluster, signal);
    this.#assertNoneRemoved(cluster.nodes);
    const ended = cluster.nodes.find(({ state }) => ["stopped", "ending", "ended"].includes(state));
    if (ended === undefined) return cluster;
    await this.forgetRights();
    const output = await consoleOutput(this.plan.engine, ended, signal).catch(() => "");
    const hint = `The node image must start systemd as /sbin/init, with sshd. ${runCommand("doctor")} to see what this computer lacks.`;
    throw machineFailed(ended, { output, hint });
  }

  /**
   * Something that drops packets looks like nodes that boot slowly, until the limit of the first
   * login. So a node is asked whether its sshd answers there.
   */
  async #warnIfSilent({ nodes }: ClusterRecord, signal: AbortSignal): Promise<void> {
    const { clock, progress } = this.runtime;
    const { engine } = this.plan;
    const silence = this.#silence;
    const [first] = nodes;
    if (silence.isOver || first === undefined || nodes.some(({ state }) => state !== "running"))
      return;
    silence.sinceMs ??= passedMs(clock);
    if (passedMs(clock) - silence.sinceMs < silentMs) return;
    const words = ["exec", first.id, "bash", "-c", "</dev/tcp/127.0.0.1/22"];
    const answers = await engine.ask({ words }, signal).then(
      () => true,
      () => false,
    );
    signal.throwIfAborted();
    silence.count += 1;
    silence.sinceMs = passedMs(clock);
    const isMissed = answers ? silence.hasAnswered : silence.count === mostSilences;
    silence.hasAnswered = answers;
    if (silence.isOver || !isMissed) return;
    silence.isOver = true;
    const { title, name } = engine.kind;
    const reach = this.#reachNow;
    const seconds = (silence.count * silentMs) / 1000;
    const cause =
      answers && reach === "direct"
        ? "Something on this computer, such as a firewall or a VPN, may keep it from the nodes' addresses."
        : `Their sshd ${answers ? "answers on the nodes themselves" : "may not run"}: see ${name} logs.`;
    progress.warn(
      `All containers have been running for ${seconds} s, but none accepts a login ${reachText(reach, { title })}. ${cause}`,
    );
  }

  #assertNoneRemoved(nodes: readonly NodeRecord[]): void {
    for (const node of nodes) this.#seen.set(node.id, node);
    const removed = [...this.#seen.values()].find(
      ({ id }) => !nodes.some((node) => node.id === id),
    );
    if (removed === undefined) return;
    const stateReason = "the container was removed";
    throw machineFailed(
      { ...removed, stateReason },
      { output: "", hint: "If that was a mistake, create it again." },
    );
  }

  async describe(signal: AbortSignal): Promise<ClusterRecord> {
    return this.#read(
      await describeContainers(this.plan.engine, { creationId: this.#creationId }, signal),
    );
  }

  #read(described: readonly unknown[]): ClusterRecord {
    const { request, root } = this.plan;
    const { expiresAt } = this.begun;
    const network = {
      clusterId: request.clusterId,
      creationId: this.#creationId,
      ...this.facts,
      expiresAt,
      reach: this.#reachNow,
    };
    const containers = readNodes(described, [network]).read;
    const passageTo = passageThrough(this.plan.engine.kind, this.runtime.environment);
    const [cluster] = toClusters(
      { containers, networks: [network], abandoned: new Set() },
      { root, passageTo },
    );
    if (cluster === undefined)
      throw new TypeError("The network of this creation was not read as a cluster");
    return cluster;
  }

  get #reachNow(): Reach {
    return reachOf({ reach: this.reach }, this.begun.bridge, ownInterfaces());
  }

  get #creationId(): string {
    return this.begun.name?.creationId ?? "";
  }

  /** Each container gets its own host key, from here through the engine. */
  get firstLogin() {
    return {
      lookEveryMs: 3_000,
      limitMs: 10 * 60_000,
      everyMs: tryEveryMs[this.#reachNow],
      hostKey: (node) => ({ publicKey: this.hostKeys.of(node).publicKey, isPrivate: true }),
      finishBoot: async (node: NodeRecord, shell: NodeShell, signal: AbortSignal) => {
        this.#silence.isOver = true;
        await this.untilJoined?.(node, shell, signal);
        // Over the connection that is there, because the engine takes much longer to start a process on a node.
        const ask: RunningNode["ask"] = async (argv, inner) =>
          (await shell.run({ argv, sudo: true, limitMs: rebootLimitMs }, inner)).stdout;
        this.#permits.push(this.#allowReboot({ id: node.id, ask }, signal));
      },
      finishBoots: async () => void (await Promise.all(this.#permits)),
      whyUnreachable: async () => {
        await this.forgetRights();
        return undefined;
      },
    } satisfies FirstLogin;
  }

  /** Resolves when the node is in the network that its platform knows, if that is another one than the engine's. */
  protected untilJoined?(node: NodeRecord, shell: NodeShell, signal: AbortSignal): Promise<void>;

  async stop(signal: AbortSignal): Promise<void> {
    const { name } = this.begun;
    if (name === undefined) return;
    await Promise.all(this.#permits);
    await stopCreation(this.plan.engine, name, signal);
    await this.forgetRights();
  }

  /** Also removes snapshots, such as those of `once --save-on-failure`. */
  async remove(signal: AbortSignal): Promise<string | undefined> {
    const { name } = this.begun;
    if (name === undefined) return undefined;
    return await removeWithSnapshots(this.plan.engine, name, this.runtime.clock, signal);
  }

  remains(): CreationRemains | undefined {
    if (this.begun.name === undefined) return undefined;
    const how = `Remove them with: ${removalCommand(this.plan.engine, this.plan.request.clusterId)}`;
    return { kept: `its containers. ${how}`, left: `Containers and a network may be left. ${how}` };
  }

  protected get rightsMemory(): string {
    return join(this.plan.root, ".rights");
  }

  /** After a failure, the next creation tests the rights again, because they may have changed. */
  protected async forgetRights(): Promise<void> {
    await rm(this.rightsMemory, { force: true });
  }
}

const mostLines = 2000;
const keptCharacters = 1_000_000;

/** Collects what each node wrote to its console until the signal is aborted. */
export async function clusterConsoleOutput(
  engine: Engine,
  cluster: ClusterRecord,
  signal: AbortSignal,
): Promise<readonly NamedText[]> {
  return consoleOutputs(cluster.nodes, async (node) => consoleOutput(engine, node, signal), signal);
}

async function consoleOutput(
  engine: Engine,
  { id }: NodeRecord,
  signal: AbortSignal,
): Promise<string> {
  return engine.ask({ words: ["logs", `--tail=${mostLines}`, id], keptCharacters }, signal);
}
