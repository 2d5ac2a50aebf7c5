import { chmod } from "node:fs/promises";
import { join } from "node:path";
import { containerKind } from "../../../src/backend/container/container-kind.ts";
import type { ClusterRecord } from "../../../src/model/cluster-record.ts";
import { exampleCluster } from "../../support/install-example.ts";
import { type FolderMachines, startMachines } from "../../support/install-machine.ts";
import { runCommandLine } from "../../support/run-command.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";
import { fastClock } from "../../support/scripted-clock.ts";

interface InstalledCluster extends AsyncDisposable {
  readonly machines: FolderMachines;
  readonly cluster: ClusterRecord;
  readonly folder: string;
  /** Runs a command on the cluster `example`. */
  run(
    line: string,
    environment?: Readonly<Record<string, string>>,
  ): ReturnType<typeof runCommandLine>;
}

/** A cluster of a master and an agent on which the platform is installed and ready. */
export async function installedCluster(): Promise<InstalledCluster> {
  const scratch = await scratchFolder();
  const machines = await startMachines({ roles: ["master", "agent"] });
  for (const machine of machines.machines) {
    await machine.write("var/lib/cluster-e2e/layout", "cluster\n");
    await machine.write("var/lib/cluster-e2e/install.status", "exit 0\n");
    await machine.write("etc/systemd/system/cluster.target", "");
    await machine.write("opt/cluster/etc/version.json", '{ "variant": "oss", "version": "1.0" }\n');
    await machine.write("opt/cluster/etc/bootstrap-config.json", '{\n  "ssl_enabled": false\n}\n');
    await machine.write("opt/cluster/bin/check", "#!/bin/sh\nexit 0\n");
    await chmod(join(machine.folder, "opt/cluster/bin/check"), 0o755);
  }
  const directory = join(scratch.path, "state");
  await machines.openTo(directory);
  const cluster = { ...exampleCluster(machines.nodes, "oss"), directory };
  const consoleOutput = async () => [{ name: "master_0.console.txt", text: "it booted\n" }];
  const backend = { find: async () => cluster, consoleOutput };
  return {
    machines,
    cluster,
    folder: scratch.path,
    run: async (line, environment = {}) =>
      runCommandLine(`${line} -c example`, {
        kind: containerKind,
        backend,
        nowMs: 0,
        clock: fastClock,
        cwd: scratch.path,
        environment,
      }),
    [Symbol.asyncDispose]: async () => {
      await machines[Symbol.asyncDispose]();
      await scratch[Symbol.asyncDispose]();
    },
  };
}
