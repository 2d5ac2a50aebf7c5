import { expect, test } from "bun:test";
import { engineKinds } from "../../../../../src/backend/container/engine/engine-kinds.ts";
import type { EngineFacts } from "../../../../../src/backend/container/engine/engine-kind.ts";
import type { NodeContainer } from "../../../../../src/backend/container/records/read-containers.ts";
import {
  assertSnapshotSpace,
  readNeeds,
} from "../../../../../src/backend/container/snapshots/assert-space.ts";
import { failureOf } from "../../../../support/failure-of.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";
import { SnapshotEngine } from "./snapshot-engine.ts";

const nowhere = { rootFolder: "/nowhere/at-all", location: "here" } as EngineFacts;

const none = { facts: nowhere, environment: {} };

/** Two nodes on one disk of 100 GB, of which `freeKilobytes` are free, and each of which has written 3 GB. */
async function assertWith(
  freeKilobytes: number,
  {
    sparse = "",
    facts = nowhere,
    environment = {},
    kind = engineKinds.docker,
    layerBytes = 3e9,
  } = {},
) {
  const memory = new SnapshotEngine();
  memory.layerBytes = layerBytes;
  memory.space = `100000000 ${freeKilobytes}\n`;
  memory.sparse = sparse;
  const nodes = [...memory.containers.keys()].map((id, index): unknown => ({
    id,
    role: "agent",
    index,
    volumes: [],
  })) as readonly NodeContainer[];
  const asserted = assertSnapshotSpace(
    { ...memory.engine, kind },
    nodes,
    { facts, environment },
    neverAborted,
  );
  return asserted.then(
    () => [undefined, memory.changes] as const,
    (error: unknown) => [error, memory.changes] as const,
  );
}

test("a snapshot that fits is none of the disk's business", async () => {
  expect(await assertWith(6_000_000)).toEqual([undefined, []]);
});

test("a snapshot for which the disk has no room is refused, without pausing a node", async () => {
  const [error, changes] = await assertWith(5_000_000);
  expect(error).toMatchObject({
    id: "capacity-lacking",
    message: "The disk of Docker has 5.1 GB of free space, but the snapshot requires 6.0 GB.",
    hint: "Free some space, or delete a snapshot.",
  });
  expect(changes).toEqual([]);
});

const podman = engineKinds.podman;

test("Podman also writes each layer into two temporary files, of six nodes at most", async () => {
  expect(await assertWith(18_000_000, { kind: podman })).toEqual([undefined, []]);
  const [error] = await assertWith(17_000_000, { kind: podman });
  expect((error as Error).message).toContain("the snapshot requires 18.0 GB");
});

test("temporary files on another disk need their space there", async () => {
  const facts = { rootFolder: "/proc", location: "here" } as EngineFacts;
  const environment = { TMPDIR: "/sys" };
  expect(await assertWith(7_000_000, { facts, environment, kind: podman })).toMatchObject([
    {
      id: "capacity-lacking",
      message: "/sys has 0.0 GB of free space, but the snapshot requires 12.0 GB.",
      hint: "Free some space there, or set TMPDIR to a folder on a larger disk.",
    },
    [],
  ]);
});

test.each(["elsewhere", "virtual-machine"] as const)(
  "the free space of a folder here does not count for an engine that is %s",
  async (location) => {
    const facts = { rootFolder: "/", location } as EngineFacts;
    const [error] = await assertWith(1, { facts });
    expect(error).toMatchObject({ id: "capacity-lacking" });
  },
);

test("a node with a quota sees less than the engine's disk has", async () => {
  const facts = { rootFolder: "/", location: "unknown" } as EngineFacts;
  expect(await assertWith(1, { facts, layerBytes: 1e6 })).toEqual([undefined, []]);
});

test("the largest sparse file is named, without what it does to terminals", async () => {
  const files = "1000000000 8 /srv/small\n3221225472 0 /srv/\u001B[31ms\n";
  const [error] = await assertWith(5_000_000, { sparse: files });
  expect((error as { hint: string }).hint).toMatch(
    /^Sparse files take their whole size in a snapshot, such as \S*\/srv\/\S+ of agent_\d \(3\.2 GB\): remove them\./,
  );
  expect((error as { hint: string }).hint).not.toContain("\u001B");
});

test.each(["", "no df here", "1 2 3\n", "x 5\n"])(
  "a node that answers %j is no reason to refuse",
  (printed) => {
    expect(readNeeds(printed, { layerBytes: 9e15, volumes: 0 })).toEqual([]);
  },
);

test("volumes count with what they take, on their own disk", () => {
  const printed = "100 50\n200 70\n100 50\n30\n10\n";
  expect(readNeeds(printed, { layerBytes: 2048, volumes: 2 })).toEqual([
    { disk: 100, free: 50, needed: 2 },
    { disk: 200, free: 70, needed: 30 },
    { disk: 100, free: 50, needed: 10 },
  ]);
});

test("a node that cannot be measured is no reason to refuse", async () => {
  const { engine } = new SnapshotEngine();
  const ask = async ({ words }: { readonly words: readonly string[] }) =>
    words[0] === "exec" ? Promise.reject(new Error("no df")) : "[]";
  const node = { id: "a", role: "agent", index: 0, volumes: [] } as unknown as NodeContainer;
  await assertSnapshotSpace({ ...engine, ask }, [node], none, neverAborted);
});

test("a refusal of the engine is passed on", async () => {
  const { engine } = new SnapshotEngine();
  const broken = { ...engine, ask: async () => Promise.reject(new Error("docker is gone")) };
  const failure = failureOf(assertSnapshotSpace(broken, [], none, neverAborted));
  expect((await failure).message).toBe("docker is gone");
});
