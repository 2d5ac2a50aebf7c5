import type { Program } from "../cli/command.ts";
import { completionCommand } from "../cli/completion-command.ts";
import { endsByItself, programName } from "./backend-options.ts";
import { createCommand } from "./create/create.ts";
import { destroyCommand } from "./destroy/destroy.ts";
import { doctorCommand } from "./doctor/doctor.ts";
import type { BackendKind } from "../backend/contract.ts";
import { admitCommand } from "./hand-over/admit.ts";
import { examplesCommand } from "./examples.ts";
import { faultCommand } from "./fault/fault.ts";
import { exportCommand } from "./hand-over/export.ts";
import { importCommand } from "./hand-over/import.ts";
import { inspectCommand } from "./inspect.ts";
import { listCommand } from "./list.ts";
import { logsCommand } from "./logs.ts";
import { onceCommand } from "./once/once.ts";
import { packCommand } from "./pack.ts";
import { nodeCommand, startCommand, stopCommand } from "./power.ts";
import { runCommand } from "./run.ts";
import { snapshotCommand } from "./saved-machines/snapshot.ts";
import { syncCommand } from "./sync.ts";
import { templatesCommand } from "./saved-machines/templates.ts";
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
    onceCommand(kind),
    inspectCommand(kind),
    listCommand(kind),
    syncCommand(kind),
    webCommand(kind),
    logsCommand(kind),
    upgradeCommand(kind),
    ...(parts.admission === undefined ? [] : [exportCommand(kind), importCommand(kind), admitCommand(kind)]),
    ...(parts.snapshots === undefined ? [] : [snapshotCommand(kind)]),
    ...(parts.templates === undefined ? [] : [templatesCommand(kind)]),
    nodeCommand(kind),
    ...(parts.power === undefined ? [] : [stopCommand(kind), startCommand(kind)]),
    faultCommand(kind),
    ...(endsByItself(kind) ? [] : [destroyCommand(kind)]),
    packCommand,
    examplesCommand,
    completionCommand,
  ];
  const name = programName(kind);
  const habits = async () => (await import("./habits.ts")).habitsOf(name);
  return { name, summary, commands, missingCommands: missingCommands(kind), habits, licenses: readLicenses };
}

function missingCommands(kind: BackendKind): ReadonlyMap<string, string> {
  const { parts } = kind;
  const handOver = "clusters on this computer cannot be used from another";
  const noPower = "instances that shut down terminate; to restart nodes, use `node restart`";
  return new Map([
    ...(endsByItself(kind)
      ? [["destroy", "cloud clusters terminate automatically two hours after their creation"] as const]
      : []),
    ...(parts.snapshots === undefined
      ? [["snapshot", "snapshots would stay in your account after the cluster's end"] as const]
      : []),
    ...(parts.templates === undefined
      ? [["templates", "only virtual machines are copied from templates"] as const]
      : []),
    ...(parts.power === undefined ? ["stop", "start"].map((name) => [name, noPower] as const) : []),
    ...(parts.admission === undefined ? ["export", "import", "admit"].map((name) => [name, handOver] as const) : []),
  ]);
}

/** Reads the licenses of this program and of everything that it contains. scripts/notices.ts writes the file. */
async function readLicenses(): Promise<string> {
  // An import as text would store it three times in the executable.
  const { default: path } = await import("./third-party-notices.txt", { with: { type: "file" } });
  return await Bun.file(path).text();
}
