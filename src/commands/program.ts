import type { Program } from "../cli/command.ts";
import { completionCommand } from "../cli/completion-command.ts";
import { createCommand } from "./create/create.ts";
import { destroyCommand } from "./destroy.ts";
import { doctorCommand } from "./doctor/doctor.ts";
import type { Driver } from "./driver.ts";
import { admitCommand } from "./hand-over/admit.ts";
import { exportCommand } from "./hand-over/export.ts";
import { importCommand } from "./hand-over/import.ts";
import { inspectCommand } from "./inspect.ts";
import { listCommand } from "./list.ts";
import { logsCommand } from "./logs.ts";
import { runCommand } from "./run.ts";
import { snapshotCommand } from "./snapshot.ts";
import { syncCommand } from "./sync.ts";
import { waitCommand } from "./wait.ts";
import { webCommand } from "./web.ts";

/** Builds a driver's program from the commands, in the order in which users need them. */
export function programFor(driver: Driver): Program {
  const commands = [
    doctorCommand(driver),
    createCommand(driver),
    waitCommand(driver),
    runCommand(driver),
    inspectCommand(driver),
    listCommand(driver),
    syncCommand(driver),
    webCommand(driver),
    logsCommand(driver),
    ...(driver.canHandOver ? [exportCommand(driver), importCommand(driver), admitCommand(driver)] : []),
    ...(driver.snapshots === undefined ? [] : [snapshotCommand(driver)]),
    ...(driver.hasLifetime ? [] : [destroyCommand(driver)]),
    completionCommand,
  ];
  const { program: name, summary } = driver;
  return { name, summary, commands, missingCommands: missingCommands(driver), licenses: readLicenses };
}

function missingCommands({ hasLifetime, canHandOver, snapshots }: Driver): ReadonlyMap<string, string> {
  const handOver = "clusters on this computer cannot be used from another";
  return new Map([
    ...(hasLifetime
      ? [["destroy", "cloud clusters terminate automatically two hours after their creation"] as const]
      : []),
    ...(snapshots === undefined
      ? [["snapshot", "snapshots would stay in your account after the cluster's end"] as const]
      : []),
    ...(canHandOver ? [] : ["export", "import", "admit"].map((name) => [name, handOver] as const)),
  ]);
}

/** The licenses of this program and everything it contains, written by scripts/notices.ts. */
async function readLicenses(): Promise<string> {
  // As a file of its own: text within the code is stored three times.
  const { default: path } = await import("./third-party-notices.txt", { with: { type: "file" } });
  return await Bun.file(path).text();
}
