import type { Role } from "../../model/cluster-record.ts";
import { installPaths, installUnits, unitFileOf } from "../install-paths.ts";
import type { Layout } from "../layouts/layout.ts";
import { shellText } from "../../ssh/shell-text.ts";
import runnerFile from "./install-runner.sh" with { type: "text" };
import runnerUnit from "./runner-unit.sh" with { type: "text" };
import runnerStart from "./runner-start.sh" with { type: "text" };
import { type Phase, scriptPhase } from "./phase.ts";
import startFile from "./start-install.sh" with { type: "text" };
import unitFunctions from "./unit-functions.sh" with { type: "text" };

export interface InstallSource {
  /** URL of the bootstrap server. */
  readonly url: string;
  /** As reported by the artifact's `--version`. */
  readonly release: string;
}

const bootstrapSeconds = 5 * 60;
const setUpSeconds = 2 * 60 * 60;
const reportSeconds = 30 * 60;

/** The script that the install unit runs. Its status and log outlive it and a reboot. */
export function installRunner(layout: Layout, role: Role, { url, release }: InstallSource): string {
  const shims = layout.installShims(release);
  const texts = Object.entries(shims).map(([program, text]) => [`SHIM_${program}`, text] as const);
  const values = {
    STATUS_FILE: installPaths.installStatus,
    INSTALL_SCRIPT: layout.installScript,
    RETURN_FLAG: layout.returnEarlyFlag,
    ROLE: layout.installRoles[role],
    MARKER: layout.installedMarker,
    SETUP_UNITS: layout.setupUnits.join(" "),
    SHIM_FOLDER: installPaths.shims,
    SHIMS: Object.keys(shims).join(" "),
    ...Object.fromEntries(texts),
    UNIT: installUnits.install,
    BOOTSTRAP_SECONDS: bootstrapSeconds,
    SETUP_SECONDS: setUpSeconds,
    REPORT_SECONDS: reportSeconds,
  };
  return runnerText({ url, logFile: installPaths.installLog }, runnerFile, values);
}

/** A script that a unit runs, with the functions that reach the bootstrap server. */
export const runnerText = (
  { url, logFile }: { readonly url: string; readonly logFile: string },
  file: string,
  values: Readonly<Record<string, string | number>>,
): string =>
  shellText(runnerStart, {
    FOLDER: installPaths.folder,
    LOG_FILE: logFile,
    BOOTSTRAP_URL: url,
    LOGIN_ENVIRONMENT: installPaths.loginEnvironment,
    ...values,
  }) + shellText(file);

/** The functions with which a script for a node starts such a unit. */
export const unitText = shellText(runnerUnit) + shellText(unitFunctions);

export function startInstallScript(layout: Layout, role: Role, source: InstallSource): string {
  const values = {
    FOLDER: installPaths.folder,
    LOG_FILE: installPaths.installLog,
    STATUS_FILE: installPaths.installStatus,
    UNIT: installUnits.install,
    UNIT_FILE: unitFileOf(installUnits.install),
    RUNNER: installPaths.installRunner,
    RUNNER_TEXT: installRunner(layout, role, source),
    LAYOUT: layout.name,
    LAYOUT_FILE: installPaths.layout,
  };
  return shellText(startFile, values) + unitText;
}

export const startInstall = (layout: Layout, source: InstallSource): Phase =>
  scriptPhase("Start installation", ({ node, reference }) => ({
    name: "e2e-start-install",
    text: startInstallScript(layout, node.role, source),
    task: "starting the installation",
    failure: `${reference}: cannot start the installation`,
    errorId: "install-failed",
  }));
