import { limitsOf } from "../../../../../src/backend/container/limits.ts";
import { expect, test } from "bun:test";
import type { Engine } from "../../../../../src/backend/container/engine/engine.ts";
import { engineKinds } from "../../../../../src/backend/container/engine/engine-kinds.ts";
import { labelNames } from "../../../../../src/backend/container/records/labels.ts";
import type { SavedNode } from "../../../../../src/backend/container/snapshots/read-snapshots.ts";
import { restoreNodes } from "../../../../../src/backend/container/snapshots/saved-nodes.ts";
import { failureOf } from "../../../../support/failure-of.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";

const creationId = "0123456789abcdef";
const name = { clusterId: "default", creationId, snapshot: "installed" };
const idOf = (index: number): string => String(index).padStart(64, "0");

const saved = (index: number, address: string): SavedNode =>
  ({
    ...name,
    role: "agent",
    index,
    image: `image-${index}`,
    address,
    counts: { master: 0, agent: 2, public_agent: 0 },
    settings: { customVolumes: [], limits: limitsOf({}) },
    labels: { clusterId: "default", creationId, role: "agent", index: String(index) },
    volume: undefined,
  }) as unknown as SavedNode;

/** An engine that gives containers these addresses, by the node's index. */
function engineWith(addresses: readonly string[]) {
  /** The words of each command that creates a container. */
  const created: (readonly string[])[] = [];
  const starting = { now: 0, most: 0 };
  const describe = (index: number) => ({
    Id: idOf(index),
    Name: `/cluster-e2e-default-agent_${index}`,
    Created: "2026-01-01T00:00:00Z",
    State: { Status: "running", ExitCode: 0, OOMKilled: false, Error: "" },
    Config: {
      Labels: {
        [labelNames.clusterId]: "default",
        [labelNames.creationId]: creationId,
        [labelNames.counts]: "master=0 agent=2 public_agent=0",
        [labelNames.role]: "agent",
        [labelNames.index]: String(index),
      },
    },
    NetworkSettings: {
      Networks: { [`cluster-e2e-default-${creationId}`]: { IPAddress: addresses[index] } },
      Ports: {},
    },
  });
  const engine = {
    kind: engineKinds.docker,
    ask: async ({ words }: { readonly words: readonly string[] }) =>
      words[0] === "ps"
        ? addresses.map((_, index) => idOf(index)).join("\n")
        : JSON.stringify(addresses.map((_, index) => describe(index))),
    change: async ({ words }: { readonly words: readonly string[] }) => {
      if (words[0] === "create") created.push(words);
      if (words[0] === "start") {
        starting.most = Math.max(starting.most, ++starting.now);
        await Bun.sleep(0);
        starting.now -= 1;
      }
      return idOf(Number(/agent_(\d+)/.exec(words.join(" "))?.[1] ?? 0));
    },
  } as unknown as Engine;
  return { engine, created, starting };
}

const planOf = (nodes: readonly SavedNode[]) =>
  ({ nodes, system: { words: [], command: ["/sbin/init"], memoryBytes: 0 }, rights: [] }) as const;
const restore = (engine: Engine, nodes: readonly SavedNode[]) =>
  restoreNodes(engine, planOf(nodes), neverAborted);

test("nodes start at once, each at its address", async () => {
  const { engine, starting, created } = engineWith(["10.89.0.2", "10.89.0.3"]);
  const nodes = [saved(0, "10.89.0.2"), saved(1, "10.89.0.3")];
  await restore(engine, nodes);
  expect(starting.most).toBe(2);
  const asked = (): readonly string[] => created.flat().filter((word) => word.startsWith("--ip="));
  expect(asked()).toEqual(["--ip=10.89.0.2", "--ip=10.89.0.3"]);
});

test("a node that gets another address than in the snapshot is an error that names it", async () => {
  const { engine } = engineWith(["172.18.0.2", "172.18.0.7"]);
  expect(
    await failureOf(restore(engine, [saved(0, "172.18.0.2"), saved(1, "172.18.0.3")])),
  ).toMatchObject({
    id: "engine-failed",
    message: "Docker did not give agent_1 the address of the snapshot, such as 172.18.0.3.",
    facts: { nodes: ["agent_1"] },
  });
});
