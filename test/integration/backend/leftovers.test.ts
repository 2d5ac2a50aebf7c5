/** What doctor reports as remains of a cluster, depending on its resources and its folder on this machine. */
import { expect, test } from "bun:test";
import { leftovers } from "../../../src/backend/leftovers.ts";
import { toClusters } from "../../../src/backend/container/records/records.ts";
import { beginCreation, creationDirectory, endCreation } from "../../../src/system/files/creation-folder.ts";
import { outcomeText } from "../../support/outcome-text.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";

const creationId = "0123456789abcdef";

/** doctor's outcome for a cluster that has only a network. */
async function wordOnNetwork(root: string): Promise<string> {
  const unknown = { counts: undefined, variant: undefined, distribution: undefined };
  const network = { clusterId: "a", creationId, ...unknown };
  const inventory = { containers: [], networks: [network], abandoned: new Set<string>() };
  const outcome = await leftovers({
    clusters: toClusters(inventory, root),
    root,
    removal: (clusterId) => `destroy ${clusterId}`,
    troubleOf: async () => Promise.resolve(undefined),
  });
  return outcomeText(outcome);
}

test("a network without a creation on this machine is a remainder", async () => {
  await using folder = await scratchFolder();
  expect(await wordOnNetwork(folder.path)).toBe(
    'warn: Left over: cluster "a" (it has no nodes). → Remove those that you no longer need: destroy a',
  );
});

test("a network is a remainder after the end of its creation, and not before", async () => {
  await using folder = await scratchFolder();
  const directory = creationDirectory(folder.path, "a", creationId);
  await beginCreation(directory, "a", creationId);
  expect(await wordOnNetwork(folder.path)).toBe("pass: None");
  await endCreation(directory, "finished");
  expect(await wordOnNetwork(folder.path)).toContain('cluster "a" (it has no nodes)');
});
