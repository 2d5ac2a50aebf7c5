/** The logs that explain a failure are saved even if nodes that hang use up the time. */

import { existsSync } from "node:fs";
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { saveFailureLogs } from "../../../src/cluster/logs/save-logs.ts";
import { LineProgress } from "../../../src/library/runtime.ts";
import { exampleCluster } from "../../support/install-example.ts";
import { machinesLack, startMachines } from "../../support/install-machine.ts";
import { neverAborted } from "../../support/never-aborted.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";
import { until } from "../../support/until.ts";

test.skipIf(machinesLack !== undefined)(
  "secrets that the platform generated on the first master are masked",
  async () => {
    await using scratch = await scratchFolder();
    await using machines = await startMachines({ roles: ["master", "agent"] });
    const [master, agent] = [machines.machines[0]!, machines.machines[1]!];
    await master.write(
      "opt/cluster-platform/secret-files",
      `${join(master.folder, "etc/meter/token")}\n`,
    );
    await master.write("etc/meter/token", "token-of-the-meter\n");
    await agent.write(
      "var/lib/cluster-e2e/install.log",
      "the token is token-of-the-meter, it seems\n",
    );
    const cluster = exampleCluster(machines.nodes, "none");
    const request = { cluster, connections: machines.connections, directory: scratch.path };
    const save = async (lines: string[]) =>
      saveFailureLogs(
        { progress: new LineProgress((line) => lines.push(line)), signal: neverAborted },
        { consoleOutput: async () => [] },
        request,
      );
    const file = join(scratch.path, "agent_0.install.log");
    await save([]);
    expect(await readFile(file, "utf8")).toBe("the token is ***, it seems\n");
    // More secrets than a cluster has: nothing can be masked.
    await rm(file);
    await master.write(
      "opt/cluster-platform/secret",
      Array.from({ length: 20_000 }, (_, each) => each).join(" "),
    );
    const lines: string[] = [];
    await save(lines);
    expect(lines.join("\n")).toContain("more secrets to mask");
    expect(existsSync(file)).toBe(false);
  },
);

const hangingJournal = `#!/bin/sh\n: >"$MACHINE/run/asked"\nexec sleep 60\n`;

test.skipIf(machinesLack !== undefined)(
  "what the backend has told stays when the time for all logs is over",
  async () => {
    await using scratch = await scratchFolder();
    await using machines = await startMachines({
      roles: ["master"],
      programs: { journalctl: hangingJournal },
    });
    const limit = new AbortController();
    const lines: string[] = [];
    const saving = saveFailureLogs(
      { progress: new LineProgress((line) => lines.push(line)), signal: limit.signal },
      { consoleOutput: async () => [{ name: "master_0.console.txt", text: "Kernel panic\n" }] },
      {
        cluster: exampleCluster(machines.nodes, "oss"),
        connections: machines.connections,
        directory: scratch.path,
      },
    );
    await until("the node was asked", () =>
      existsSync(join(machines.machines[0]!.folder, "run/asked")),
    );
    limit.abort(new Error("the time is over"));
    await saving;
    expect(await readFile(join(scratch.path, "master_0.console.txt"), "utf8")).toBe(
      "Kernel panic\n",
    );
    expect(lines.join("\n")).toContain(`The nodes' logs are in ${scratch.path}`);
  },
);
