import { expect, test } from "bun:test";
import { join } from "node:path";
import type { Backend } from "../../../../src/backend/contract.ts";
import type { Context } from "../../../../src/cli/command.ts";
import { tryToReport } from "../../../../src/commands/report/write-cluster-report.ts";
import type { ClusterRecord } from "../../../../src/model/cluster-record.ts";
import { systemClock } from "../../../../src/system/runtime.ts";
import { silentProgress } from "../../../support/silent-progress.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

test("an interrupted command waits for no more logs for its report", async () => {
  await using folder = await scratchFolder();
  const interrupted = new AbortController();
  const backend = {
    consoleOutput: async (_cluster: unknown, signal: AbortSignal) => {
      const { promise, resolve } = Promise.withResolvers<[]>();
      signal.addEventListener("abort", () => resolve([]));
      interrupted.abort();
      return promise;
    },
  };
  const cluster = {
    id: "nightly",
    backend: "vm",
    variant: "none",
    distribution: "debian-12",
    platform: "etcd 2379 1.0",
    directory: folder.path,
    nodes: [],
  };
  const file = join(folder.path, "report.html");
  await tryToReport(
    backend as unknown as Backend<unknown>,
    { clusterId: "nightly", file, cluster: cluster as unknown as ClusterRecord, junit: [] },
    {
      signal: interrupted.signal,
      progress: silentProgress,
      clock: systemClock,
      environment: {},
      programName: "cluster-vm",
    } as unknown as Context,
  );
  const report = await Bun.file(file).text();
  for (const text of ["Cluster nightly", "etcd 1.0", "debian-12"]) expect(report).toContain(text);
  expect(report).not.toMatch(/variant/i);
});
