import { commandName } from "../references.ts";
import type { Program } from "../cli/command.ts";
import { completionCommand } from "../cli/completion-command.ts";
import { endsByItself, programName } from "./backend-options.ts";
import { cpCommand } from "./copy/cp.ts";
import { createCommand } from "./create/create.ts";
import { destroyCommand } from "./destroy/destroy.ts";
import { doctorCommand } from "./doctor/doctor.ts";
import type { BackendKind, CloudKind, LocalKind } from "../backend/contract.ts";
import { forwardCommand } from "./forward.ts";
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
import { reportCommand } from "./report/report.ts";
import { runCommand } from "./run/run.ts";
import { snapshotCommand } from "./saved-machines/snapshot.ts";
import { syncCommand } from "./sync.ts";
import { templatesCommand } from "./saved-machines/templates.ts";
import { upgradeCommand } from "./upgrade/upgrade.ts";
import { waitCommand } from "./wait.ts";
import { webCommand } from "./web.ts";

export function programFor(kind: BackendKind): Program {
  const { summary } = kind;
  const commands = [
    doctorCommand(kind),
    createCommand(kind),
    waitCommand(kind),
    runCommand(kind),
    onceCommand(kind),
    inspectCommand(kind),
    listCommand(kind),
    syncCommand(kind),
    cpCommand(kind),
    webCommand(kind),
    forwardCommand(kind),
    logsCommand(kind),
    reportCommand(kind),
    upgradeCommand(kind),
    ...(kind.local === undefined ? cloudCommands(kind) : localCommands(kind)),
    faultCommand(kind),
    ...(endsByItself(kind) ? [] : [destroyCommand(kind)]),
    packCommand,
    examplesCommand,
    completionCommand,
  ];
  const name = programName(kind);
  const habits = async () => (await import("./habits.ts")).habitsOf(name);
  return {
    name,
    summary,
    commands,
    missingCommands: missingCommands(kind),
    habits,
    licenses: readLicenses,
  };
}

const cloudCommands = (kind: CloudKind) => [
  exportCommand(kind),
  importCommand(kind),
  admitCommand(kind),
  nodeCommand(kind),
];

const localCommands = (kind: LocalKind) => [
  snapshotCommand(kind),
  ...(kind.local.templates === undefined ? [] : [templatesCommand(kind)]),
  nodeCommand(kind),
  stopCommand(kind),
  startCommand(kind),
];

function missingCommands(kind: BackendKind): ReadonlyMap<string, string> {
  const isLocal = kind.local !== undefined;
  const handOver = "clusters on this computer cannot be used from another";
  const noPower = `instances that shut down terminate; to restart nodes, use ${commandName("node restart NODE")}`;
  const rows: readonly (readonly [names: readonly string[], isMissing: boolean, reason: string])[] =
    [
      [
        ["destroy"],
        !isLocal,
        "cloud clusters terminate automatically two hours after their creation",
      ],
      [["snapshot"], !isLocal, "snapshots would stay in your account after the cluster's end"],
      [
        ["templates"],
        kind.local?.templates === undefined,
        "only virtual machines are copied from templates",
      ],
      [["stop", "start"], !isLocal, noPower],
      [["export", "import", "admit"], isLocal, handOver],
    ];
  return new Map(
    rows.flatMap(([names, isMissing, reason]) =>
      isMissing ? names.map((name) => [name, reason]) : [],
    ),
  );
}

/** Reads the licenses of this program and of everything that it contains. scripts/notices.ts writes the file. */
async function readLicenses(): Promise<string> {
  // An import as text would store it three times in the executable.
  const { default: path } = await import("./third-party-notices.txt", { with: { type: "file" } });
  return await Bun.file(path).text();
}
