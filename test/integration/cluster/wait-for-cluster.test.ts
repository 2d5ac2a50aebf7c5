/** `wait` logs in at the last known addresses while it asks the backend. */
import { expect, test } from "bun:test";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Backend } from "../../../src/backend/contract.ts";
import { waitForCluster } from "../../../src/cluster/wait-for-cluster.ts";
import { createKnownHosts } from "../../../src/ssh/openssh-files.ts";
import { creationFiles } from "../../../src/store/creation-folder.ts";
import { keepLastRecord } from "../../../src/store/last-record.ts";
import { passedMs, systemClock } from "../../../src/system/runtime.ts";
import { failureOf } from "../../support/failure-of.ts";
import { exampleScope } from "../../support/install-example.ts";
import {
  opensshLack,
  type OpensshServer,
  startOpensshServer,
} from "../../support/openssh-server.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";
import { silentProgress } from "../../support/silent-progress.ts";
import { signal, wireKey } from "../../support/ssh-options.ts";
import { until } from "../../support/until.ts";
import { clusterAt, gone } from "./run-at.ts";

/** Waits for a cluster that the backend reports as gone once `seen` is in the log of the machine at its last address. */
async function waitForGone(at: OpensshServer, keys: OpensshServer, seen: string) {
  await using scratch = await scratchFolder();
  const root = join(scratch.path, "cluster-e2e", "cloud", "us-west-2");
  const directory = join(root, "demo-0123456789abcdef");
  await mkdir(directory, { recursive: true });
  const files = creationFiles(directory);
  await writeFile(files.privateKey, keys.loginKey.privateKey, { mode: 0o600 });
  const key = wireKey(keys.firstHostKey.publicKey);
  await createKnownHosts(files.knownHosts).pin("127.0.0.1", at.port, key);
  await keepLastRecord({ ...clusterAt(at.port), directory });
  const find = async (): Promise<never> => {
    await until(`"${seen}" is in the log`, async () => (await at.log()).includes(seen));
    throw gone;
  };
  const environment = { XDG_STATE_HOME: scratch.path };
  return await failureOf(
    waitForCluster(
      { environment, clock: systemClock, progress: silentProgress, signal },
      { name: "cloud", scope: exampleScope, find } as unknown as Backend<unknown>,
      {
        clusterId: "demo",
        login: undefined,
        skipHttpChecks: false,
        deadlineMs: passedMs(systemClock) + 600_000,
      },
    ),
  );
}

test.skipIf(opensshLack !== undefined)(
  `while the backend is asked, nodes are logged in to, and no other machine (${opensshLack ?? "here"})`,
  async () => {
    await using node = await startOpensshServer([]);
    await using other = await startOpensshServer([]);
    expect(await waitForGone(node, node, "Accepted publickey")).toBe(gone);
    expect(await waitForGone(other, node, "Connection closed by")).toBe(gone);
    expect(await other.log()).not.toContain("Accepted publickey");
  },
);
