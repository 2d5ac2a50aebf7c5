/** What doctor reports about clusters whose machines run, with real processes in place of QEMU. */
import { expect, test } from "bun:test";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { leftoversCheck } from "../../../../src/backend/vm/checks.ts";
import { writeClusterFacts } from "../../../../src/backend/vm/cluster-facts.ts";
import {
  machineFiles,
  type ProcessFiles,
} from "../../../../src/backend/vm/machines/machine-process.ts";
import { networkFiles } from "../../../../src/backend/vm/machines/private-network.ts";
import { snapshotsFolder } from "../../../../src/backend/vm/snapshots/snapshot-files.ts";
import { systemClock } from "../../../../src/system/runtime.ts";
import { outcomeText } from "../../../support/outcome-text.ts";
import { startQemuProcess } from "../../../support/qemu-process.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import { neverAborted } from "../../../support/never-aborted.ts";

const creationId = "0123456789abcdef";

async function start({ pid }: ProcessFiles): Promise<AsyncDisposable> {
  await mkdir(join(pid, ".."), { recursive: true });
  const child = await startQemuProcess(pid);
  await writeFile(pid, `${child.pid}\n`);
  return child;
}

interface Given {
  readonly agents: number;
  readonly hasNetwork: boolean;
  /** The names of folders in the cluster's folder of snapshots. */
  readonly snapshots: readonly string[];
}

/** Looks for what is left of a cluster all of whose machines run. */
async function told({ agents, hasNetwork, snapshots }: Given): Promise<string> {
  await using root = await scratchFolder();
  const directory = join(root.path, `one-${creationId}`);
  const roles = ["master" as const, ...Array.from({ length: agents }, () => "agent" as const)];
  const nodes = roles.map((role, place) => ({
    role,
    index: role === "master" ? 0 : place - 1,
    id: `vm-01234567-${place}`,
    privateAddress: `10.93.0.${place + 2}`,
    ports: { ssh: 4000, http: 4001, https: 4002 },
  }));
  await using processes = new AsyncDisposableStack();
  for (const node of nodes) {
    const files = machineFiles(directory, node);
    processes.use(await start(files));
    await writeFile(files.started, "");
  }
  if (hasNetwork) processes.use(await start(networkFiles(directory)));
  for (const name of snapshots)
    await mkdir(join(snapshotsFolder(directory), name), { recursive: true });
  const counts = { master: 1, agent: agents, public_agent: 0 };
  const known = {
    variant: "oss",
    distribution: "debian-12",
    createdAt: undefined,
    createdBy: "test",
  } as const;
  await writeClusterFacts(directory, { clusterId: "one", creationId, ...known, counts, nodes });
  return outcomeText(await leftoversCheck(root.path, systemClock).run(neverAborted));
}

const left = (what: string): string =>
  `warn: Left over: cluster "one" (${what}). → Remove those that you no longer need: cluster-vm destroy --cluster-id one`;

test.each([
  ["is whole", { agents: 1, hasNetwork: true, snapshots: ["installed"] }, "pass: None"],
  [
    "has one machine, which needs no network",
    { agents: 0, hasNetwork: false, snapshots: [] },
    "pass: None",
  ],
  [
    "has lost its network",
    { agents: 1, hasNetwork: false, snapshots: [] },
    left("the process of its private network has ended"),
  ],
  [
    "has an incomplete snapshot",
    { agents: 1, hasNetwork: true, snapshots: ["installed", ".torn"] },
    left('its snapshot "torn" is incomplete'),
  ],
])("doctor looks at a running cluster that %s", async (_, given, expected) => {
  expect(await told(given)).toBe(expected);
});
