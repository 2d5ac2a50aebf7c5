import { expect, test } from "bun:test";
import type { Engine } from "../../../../../src/backend/container/engine/engine.ts";
import {
  refillVolumes,
  saveVolumes,
} from "../../../../../src/backend/container/snapshots/saved-volumes.ts";
import type { SavedNode } from "../../../../../src/backend/container/snapshots/read-snapshots.ts";

const node = {
  clusterId: "default",
  creationId: "0123456789abcdef",
  role: "agent",
  index: 0,
} as const;
const volumes = [{ name: "a1b2", path: "/var/lib/docker" }];

test("the helper gets the node's own volumes and no folder of this computer", async () => {
  const commands: (readonly string[])[] = [];
  const limits: (number | undefined)[] = [];
  const change: Engine["change"] = async ({ words, limitMs }) => {
    commands.push(words);
    if (words[0] === "run") limits.push(limitMs);
    return Promise.resolve("4");
  };
  const engine = { change } as unknown as Engine;
  await saveVolumes(
    engine,
    { ...node, imageId: "image", volumes },
    { snapshot: "installed", rights: [] },
  );
  const saved = { ...node, image: "image", volume: "saved" } as unknown as SavedNode;
  await refillVolumes(engine, { volumes }, { node: saved, rights: [] });
  // To copy much takes longer than what engines do otherwise.
  expect(limits).toEqual([1_800_000, 1_800_000]);
  // A log would hold whatever is copied.
  for (const words of commands.filter(([word]) => word === "run"))
    expect(words).toEqual(expect.arrayContaining(["--rm", "--network=none", "--log-driver=none"]));
  const mounts = commands.flat().filter((word) => /^--(?:volume|mount)/.test(word));
  expect(mounts).toEqual([
    "--volume=a1b2:/cluster-e2e-node/var/lib/docker:ro",
    expect.stringMatching(
      /^--mount=type=volume,source=cluster-e2e-snapshot-\S+,target=\/cluster-e2e-snapshot$/,
    ),
    "--volume=a1b2:/cluster-e2e-node/var/lib/docker",
    "--volume=saved:/cluster-e2e-snapshot:ro",
  ]);
});

test.each([
  ["empty", 0, true],
  ["0", 1, false],
  ["12", 12, false],
])("a copy that is %s counts as %d kB", async (printed, kilobytes, isRemoved) => {
  const commands: string[] = [];
  const engine = {
    change: async ({ words }: { readonly words: readonly string[] }) => {
      commands.push(words.slice(0, 2).join(" "));
      return Promise.resolve(`${printed}\n`);
    },
  } as unknown as Engine;
  const saved = await saveVolumes(
    engine,
    { ...node, imageId: "image", volumes },
    { snapshot: "installed", rights: [] },
  );
  expect(saved).toBe(kilobytes);
  expect(commands.includes("volume rm")).toBe(isRemoved);
});

test("a node whose volumes were empty gets none of them back", async () => {
  const change = async (): Promise<string> => Promise.reject(new Error("nothing is to be copied"));
  const saved = { ...node, image: "image", volume: undefined } as unknown as SavedNode;
  await refillVolumes({ change } as unknown as Engine, { volumes }, { node: saved, rights: [] });
});
