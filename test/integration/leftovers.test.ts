/** What the doctor takes for the remains of a cluster, by what there is of it and by its folder on this machine. */
import { expect, test } from "bun:test";
import { leftovers } from "../../src/backend/leftovers.ts";
import { readLabels, labelNames } from "../../src/backend/container/labels.ts";
import { toClusters } from "../../src/backend/container/records.ts";
import { beginCreation, creationDirectory, endCreation } from "../../src/system/creation-folder.ts";
import { outcomeText } from "../support/outcome-text.ts";
import { scratchFolder } from "../support/scratch-folder.ts";

/** The doctor's word on a cluster of which there is a network only, made by the creation "c1". */
async function wordOnNetwork(root: string): Promise<string> {
  const labels = readLabels({ [labelNames.clusterId]: "a", [labelNames.creationId]: "c1" });
  const inventory = { containers: [], networks: [{ id: "n", labels }], abandoned: new Set<string>() };
  const outcome = await leftovers({
    clusters: toClusters(inventory, root),
    root,
    removal: (clusterId) => `destroy ${clusterId}`,
    troubleOf: async () => Promise.resolve(undefined),
  });
  return outcomeText(outcome);
}

test("a network of which this machine knows no creation is left", async () => {
  await using folder = await scratchFolder();
  expect(await wordOnNetwork(folder.path)).toBe(
    'warn: There is cluster "a" (it has no nodes). → Remove what you need no more: destroy a',
  );
});

test("a network is left once its creation is over, and not before", async () => {
  await using folder = await scratchFolder();
  const directory = creationDirectory(folder.path, "a", "c1");
  await beginCreation(directory, "a", "c1");
  expect(await wordOnNetwork(folder.path)).toBe("pass: None");
  await endCreation(directory, "finished");
  expect(await wordOnNetwork(folder.path)).toContain('cluster "a" (it has no nodes)');
});
