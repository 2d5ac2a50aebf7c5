import { limitsText } from "../limits.ts";
import { platform } from "node:os";
import type { NodeRecord } from "../../../model/cluster-record.ts";
import { mapConcurrently } from "../../../system/concurrency.ts";
import type { Clock, Runtime, Work } from "../../../system/runtime.ts";
import type { Creation, CreationFolder, CreationSummary, NodeShell } from "../../contract.ts";
import { describeOrigin, wayOutText } from "../../shared/describe-copy.ts";
import { deadlineFiles } from "../../shared/first-boot.ts";
import { type ClusterFacts, ContainerMachines, type MachinesPlan } from "../container-machines.ts";
import { type Way, findReach, labelledReach, reachText } from "../engine/find-reach.ts";
import { assertLimitsWork } from "../engine/assert-usable.ts";
import { readDefaultNetwork } from "../engine/default-network.ts";
import type { DescribedNetwork, EngineFacts, Reach } from "../engine/engine-kind.ts";
import { addressesIn } from "../launch/create-network.ts";
import { beginNode, hostsFiles, identityArchive } from "../launch/launch.ts";
import { nodeState } from "../launch/system-flags.ts";
import type { CreationName } from "../records/labels.ts";
import { assertIdCanBeClaimed, readInventory } from "../records/records.ts";
import { createSavedNodes, nodeRights } from "../snapshots/saved-nodes.ts";
import type { CopiedNode, CopyOrigin, OpenOrigin } from "./copy-origin.ts";
import { assertJoined, networkFiles } from "./join-network.ts";

const startsAtOnce = 6;

interface CopyPlan extends MachinesPlan {
  readonly origin: CopyOrigin;
  readonly reach: Way["reach"];
  /** The engine's own network. */
  readonly usual: DescribedNetwork;
}

/**
 * A cluster whose nodes boot from another cluster's snapshot, on this computer or in a file. The
 * engine gives the nodes new addresses. The addresses that the platform knows are in a separate
 * network (see `join-network.sh`), so both clusters can run at once. See Creation.
 */
export class ContainerCopy extends ContainerMachines implements Creation {
  readonly summary: CreationSummary;
  readonly #plan: CopyPlan;
  /** The containers' ids, and what they were created from. */
  #created: ReadonlyMap<string, CopiedNode> = new Map();
  #opened: OpenOrigin | undefined;

  constructor(plan: CopyPlan, runtime: Runtime) {
    super(plan, runtime);
    this.#plan = plan;
    this.summary = describeCopy(plan, runtime.clock);
  }

  /** Creates nothing. Throws `cluster-exists`. */
  static async plan(
    work: Work,
    { engine, root, request, origin }: Pick<CopyPlan, "engine" | "root" | "request" | "origin">,
  ): Promise<ContainerCopy> {
    assertLimitsWork(engine.kind, origin.engineFacts, origin.settings.limits);
    const { clusterId } = request;
    const [{ reach }, usual, { hasLeftovers }] = await Promise.all([
      findReach(engine, origin.engineFacts, platform(), work.signal),
      readDefaultNetwork(engine, work.signal),
      assertIdCanBeClaimed(engine, {
        root,
        clusterId,
        clock: work.clock,
        inventory: readInventory(engine, { clusterId }, root, work.signal),
      }),
    ]);
    return new ContainerCopy({ engine, root, request, origin, reach, usual, hasLeftovers }, work);
  }

  protected get facts(): ClusterFacts {
    return this.#plan.origin.facts;
  }

  protected get reach(): Reach {
    return labelledReach(this.#plan);
  }

  protected get engineFacts(): EngineFacts {
    return this.#plan.origin.engineFacts;
  }

  async claim(folder: CreationFolder, signal: AbortSignal): Promise<void> {
    const { origin } = this.#plan;
    await this.assertLeftoversAreGone(signal);
    signal.throwIfAborted();
    const name = await this.begin(folder);
    this.#opened = await origin.open(name, signal);
    await this.#orLetGo(this.#createNodes(name, this.#opened, signal));
  }

  async #createNodes(
    name: CreationName,
    { nodes: saved, copiedFrom }: OpenOrigin,
    signal: AbortSignal,
  ): Promise<void> {
    const { engine, root, origin, usual } = this.#plan;
    const rights = await nodeRights(
      engine,
      { image: saved[0].image, root, facts: origin.engineFacts, usual },
      signal,
    );
    using step = this.runtime.progress.start("Copy file systems");
    const labels = { ...this.labelsOf(name, this.reach), copiedFrom: copiedFrom.join(" ") };
    const known = saved.map(({ platformAddress }) => platformAddress);
    signal.throwIfAborted();
    const { reach: way } = this.#plan;
    const range = await this.createNetwork({ ...name, labels }, { way, usual, known }, signal);
    const [, ...addresses] = addressesIn(range, saved.length);
    const nodes = saved.map((node, place) => {
      const { platformAddress } = node;
      const address = addresses[place] ?? "";
      return { ...node, ...name, address, labels: { ...labels, range, platformAddress } };
    });
    this.#created = await createSavedNodes(engine, { nodes, ...rights }, signal);
    step.done();
  }

  async launch(publicKey: string, signal: AbortSignal): Promise<void> {
    await this.#orLetGo(this.#start(publicKey, signal));
    await this.#release("running");
  }

  async #orLetGo(work: Promise<void>): Promise<void> {
    try {
      await work;
    } catch (error) {
      // Nobody may call `remove`. If this fails too, the first failure says more.
      await Promise.allSettled([this.#release("failed")]);
      throw error;
    }
  }

  /** Called after the start, because Docker would remove images that no running container uses. */
  async #release(containers: "running" | "failed"): Promise<void> {
    const opened = this.#opened;
    this.#opened = undefined;
    await opened?.release(containers);
  }

  async #start(publicKey: string, signal: AbortSignal): Promise<void> {
    await this.startContainers(async (onStart) => {
      const nodes = [...this.#created.values()];
      const hosts = hostsFiles(
        nodes.map((node) => ({ ...node, address: node.platformAddress.split("/")[0] ?? "" })),
      );
      const begin = async ([id, node]: readonly [string, CopiedNode]): Promise<void> => {
        const others = nodes.filter((each) => each !== node);
        const wanted = { name: `${nodeState.slice(1)}/wanted`, mode: 0o644, text: "" };
        const files = [
          ...networkFiles(node, others),
          ...hosts,
          wanted,
          ...deadlineFiles(this.begun.expiresAt),
        ];
        const keys = { hostKey: this.hostKeys.of(node), publicKey };
        const identity = await identityArchive({ ...keys, files }, this.runtime.clock.now());
        await beginNode(this.#plan.engine, { id, identity, onStart }, signal);
      };
      await mapConcurrently([...this.#created], startsAtOnce, begin, signal);
    });
  }

  protected override async untilJoined(
    node: NodeRecord,
    shell: NodeShell,
    signal: AbortSignal,
  ): Promise<void> {
    await assertJoined(node, shell, signal);
  }

  override async remove(signal: AbortSignal): Promise<string | undefined> {
    await this.#release("failed");
    return await super.remove(signal);
  }
}

export function describeCopy({ engine: { kind }, request, origin, reach }: CopyPlan, clock: Clock) {
  const { settings, engineFacts, title, summary, facts } = origin;
  return describeOrigin(
    request,
    {
      ...facts,
      title,
      summary,
      engine: `${kind.title} ${engineFacts.version}`,
      lines: [
        ["Limits", `${limitsText(settings.limits, { after: " ", none: "none" })}, each`],
        [
          "Network",
          `its own bridge, and on it the private addresses of the snapshot${wayOutText(facts.isOffline)}`,
        ],
        ["Reached", reachText(reach, kind)],
      ],
      facts: {
        engine: { name: kind.name, version: engineFacts.version },
        reach,
        volumes: settings.customVolumes,
        ...settings.limits,
        ...(facts.isOffline && { offline: true }),
      },
    },
    clock,
  );
}
