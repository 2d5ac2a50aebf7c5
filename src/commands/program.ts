import type { Program } from "../cli/command.ts";
import { completionCommand } from "../cli/completion-command.ts";
import { programName } from "./backend-options.ts";
import { createCommand } from "./create/create.ts";
import { destroyCommand } from "./destroy.ts";
import { doctorCommand } from "./doctor/doctor.ts";
import type { BackendKind } from "../backend/contract.ts";
import { admitCommand } from "./hand-over/admit.ts";
import { examplesCommand } from "./examples.ts";
import { exportCommand } from "./hand-over/export.ts";
import { importCommand } from "./hand-over/import.ts";
import { inspectCommand } from "./inspect.ts";
import { listCommand } from "./list.ts";
import { logsCommand } from "./logs.ts";
import { packCommand } from "./pack.ts";
import { runCommand } from "./run.ts";
import { snapshotCommand } from "./snapshot.ts";
import { syncCommand } from "./sync.ts";
import { upgradeCommand } from "./upgrade/upgrade.ts";
import { waitCommand } from "./wait.ts";
import { webCommand } from "./web.ts";

/** Builds a backend's program from the commands, in the order in which users need them. */
export function programFor(kind: BackendKind): Program {
  const { parts, summary } = kind;
  const commands = [
    doctorCommand(kind),
    createCommand(kind),
    waitCommand(kind),
    runCommand(kind),
    inspectCommand(kind),
    listCommand(kind),
    syncCommand(kind),
    webCommand(kind),
    logsCommand(kind),
    upgradeCommand(kind),
    ...(parts.admission === undefined ? [] : [exportCommand(kind), importCommand(kind), admitCommand(kind)]),
    ...(parts.snapshots === undefined ? [] : [snapshotCommand(kind)]),
    ...(kind.hasLifetime ? [] : [destroyCommand(kind)]),
    packCommand,
    examplesCommand,
    completionCommand,
  ];
  return { name: programName(kind), summary, commands, missingCommands: missingCommands(kind), licenses: readLicenses };
}

function missingCommands({ hasLifetime, parts }: BackendKind): ReadonlyMap<string, string> {
  const handOver = "clusters on this computer cannot be used from another";
  return new Map([
    ...(hasLifetime
      ? [["destroy", "cloud clusters terminate automatically two hours after their creation"] as const]
      : []),
    ...(parts.snapshots === undefined
      ? [["snapshot", "snapshots would stay in your account after the cluster's end"] as const]
      : []),
    ...(parts.admission === undefined ? ["export", "import", "admit"].map((name) => [name, handOver] as const) : []),
  ]);
}

/** The licenses of this program and everything it contains, written by scripts/notices.ts. */
async function readLicenses(): Promise<string> {
  // As a file of its own: text within the code is stored three times.
  const { default: path } = await import("./third-party-notices.txt", { with: { type: "file" } });
  return await Bun.file(path).text();
}
