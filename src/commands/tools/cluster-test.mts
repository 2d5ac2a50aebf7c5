// Runs in Vitest on your computer. Copy this file beside your tests, and use `clusterTest` instead of `test`: each test
// gets the cluster as it was when the platform was ready. If it fails, its logs are in a folder of logs/.
import { Cluster, ContainerBackend } from "cluster-e2e";
import { type TestContext, test } from "vitest";

/** Change these two lines. */
const platform = "./platform";
const backend = new ContainerBackend();

export const clusterTest = test
  // eslint-disable-next-line no-empty-pattern -- Vitest reads from it which fixtures this one needs
  .extend("installed", { scope: "worker" }, async ({}, { onCleanup }) => {
    const cluster = await Cluster.create(backend, { platform, install: true });
    onCleanup(() => cluster.destroy());
    return cluster;
  })
  .extend("cluster", async ({ installed, task }, { onCleanup }) => {
    if ((await installed.snapshots()).length === 0) await installed.snapshot("ready");
    else {
      await installed.restore("ready");
      await installed.waitForCluster();
    }
    onCleanup(() => saveLogsOfFailure(installed, task));
    return installed;
  });

async function saveLogsOfFailure(cluster: Cluster, task: TestContext["task"]): Promise<void> {
  if (task.result?.state !== "fail") return;
  await cluster.saveLogs({ folder: `logs/${task.name.replaceAll(/[^\p{L}\p{N}_]+/gu, "-")}` });
}
