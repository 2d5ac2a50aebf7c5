/** `wait --summary` on nodes that are ready. */
import { describe, expect, test } from "bun:test";
import { chmod, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Context } from "../../../src/cli/context.ts";
import type { Driver } from "../../../src/commands/driver.ts";
import { waitCommand } from "../../../src/commands/wait.ts";
import { type Clock, silentProgress, systemClock } from "../../../src/system/runtime.ts";
import { exampleCluster } from "../../support/install-example.ts";
import { machinesLack, startMachines } from "../../support/install-machine.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";

/** A clock that runs twenty times as fast. */
const fastClock: Clock = {
  now: () => Date.now() * 20,
  sleep: async (ms, signal) => systemClock.sleep(ms / 20, signal),
};

describe.skipIf(machinesLack !== undefined)(`ready nodes (${machinesLack ?? "here"})`, () => {
  test("the summary is a table of the cluster", async () => {
    await using scratch = await scratchFolder();
    await using machines = await startMachines({ roles: ["master", "agent"] });
    for (const machine of machines.machines) {
      await machine.write("var/lib/cluster-e2e/layout", "cluster\n");
      await machine.write("var/lib/cluster-e2e/install.status", "exit 0\n");
      await machine.write("opt/cluster/etc/bootstrap-config.json", '{\n  "ssl_enabled": false\n}\n');
      await machine.write("opt/cluster/bin/check", "#!/bin/sh\nexit 0\n");
      await chmod(join(machine.folder, "opt/cluster/bin/check"), 0o755);
    }
    const directory = join(scratch.path, "state");
    await machines.openTo(directory);
    const cluster = { ...exampleCluster(machines.nodes, "oss"), directory };
    const driver = { placeOptions: {}, open: async () => ({ find: async () => cluster }) } as unknown as Driver;
    const summary = join(scratch.path, "summary.md");
    const results: unknown[] = [];
    const context = {
      environment: { GITHUB_STEP_SUMMARY: summary },
      clock: fastClock,
      signal: new AbortController().signal,
      progress: silentProgress,
      output: { result: ({ data }: { data: unknown }) => void results.push(data) },
    } as unknown as Context;
    const command = waitCommand(driver);
    const input = { clusterId: "example", timeout: 600_000, skipHttpChecks: true, summary: true };
    await command.run(input as unknown as Parameters<typeof command.run>[0], context);
    expect(results).toMatchObject([{ cluster: { id: "example" }, ready: true }]);
    expect(await readFile(summary, "utf8")).toMatch(
      /^### Cluster ready\n\n\| Cluster \| `example` \|\n\| --- \| --- \|\n\| Place \| `cloud, us-west-2` \|\n\| Variant \| `oss, debian-12` \|\n\| Nodes \| `1 master, 1 agent, 0 public agents` \|\n\| Waited \| `[\d a-z]+` \|\n\n$/,
    );
  }, 60_000);
});
