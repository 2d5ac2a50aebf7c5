/** The logs that explain a failure are saved even if nodes that hang use up the time. */

import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { saveFailureLogs } from "../../../src/cluster/logs.ts";
import { LineProgress } from "../../../src/library/runtime.ts";
import { exampleCluster } from "../../support/install-example.ts";
import { machinesLack, startMachines } from "../../support/install-machine.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";
import { until } from "../../support/until.ts";

const hangingJournal = `#!/bin/sh\n: >"$MACHINE/run/asked"\nexec sleep 60\n`;

test.skipIf(machinesLack !== undefined)(
  "what the backend has told stays when the time for all logs is over",
  async () => {
    await using scratch = await scratchFolder();
    await using machines = await startMachines({ roles: ["master"], programs: { journalctl: hangingJournal } });
    const limit = new AbortController();
    const lines: string[] = [];
    const saving = saveFailureLogs(
      { consoleOutput: async () => [{ name: "master_0.console.txt", text: "Kernel panic\n" }] },
      {
        cluster: exampleCluster(machines.nodes, "oss"),
        connections: machines.connections,
        directory: scratch.path,
      },
      { progress: new LineProgress((line) => lines.push(line)) },
      limit.signal,
    );
    await until("the node was asked", () => existsSync(join(machines.machines[0]!.folder, "run/asked")));
    limit.abort(new Error("the time is over"));
    await saving;
    expect(await readFile(join(scratch.path, "master_0.console.txt"), "utf8")).toBe("Kernel panic\n");
    expect(lines.join("\n")).toContain(`The nodes' logs are in ${scratch.path}`);
  },
  60_000,
);
