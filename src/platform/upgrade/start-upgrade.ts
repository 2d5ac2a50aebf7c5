import type { Role } from "../../model/cluster-record.ts";
import { installPaths, installUnits, unitFileOf } from "../install-paths.ts";
import { type Phase, scriptPhase } from "../install/phase.ts";
import { runnerText, unitText } from "../install/start-install.ts";
import type { LayoutUpgrade } from "../layouts/layout.ts";
import { shellText } from "../../ssh/shell-text.ts";
import startFile from "./start-upgrade.sh" with { type: "text" };
import runnerFile from "./upgrade-runner.sh" with { type: "text" };

export interface UpgradeSource {
  /** URL of the bootstrap server. */
  readonly url: string;
  /** The node's script, below that URL. */
  readonly script: string;
  readonly from: string;
  readonly to: string;
}

const bootstrapSeconds = 5 * 60;
const reportSeconds = 60;

/** The script that the upgrade unit runs. Its status and log outlive it and a reboot. */
export const upgradeRunner = (
  upgrade: LayoutUpgrade,
  role: Role,
  { url, script, from }: UpgradeSource,
): string =>
  runnerText({ url, logFile: installPaths.upgradeLog }, runnerFile, {
    STATUS_FILE: installPaths.upgradeStatus,
    SCRIPT: script,
    SCRIPT_ARGUMENTS: upgrade.scriptArguments(role).join(" "),
    SCRIPT_FILE: `${installPaths.folder}/upgrade-script.sh`,
    OLD_VERSION: from,
    UNIT: installUnits.upgrade,
    BOOTSTRAP_SECONDS: bootstrapSeconds,
    REPORT_SECONDS: reportSeconds,
  });

export const startUpgradeScript = (
  upgrade: LayoutUpgrade,
  role: Role,
  source: UpgradeSource,
): string =>
  shellText(startFile, {
    FOLDER: installPaths.folder,
    LOG_FILE: installPaths.upgradeLog,
    STATUS_FILE: installPaths.upgradeStatus,
    VERSIONS_FILE: installPaths.upgradeVersions,
    VERSIONS: `${source.from}\n${source.to}`,
    UNIT: installUnits.upgrade,
    UNIT_FILE: unitFileOf(installUnits.upgrade),
    RUNNER: installPaths.upgradeRunner,
    RUNNER_TEXT: upgradeRunner(upgrade, role, source),
  }) + unitText;

/** Starts the upgrade of a node, which continues by itself. */
export const startUpgrade = (upgrade: LayoutUpgrade, source: UpgradeSource): Phase =>
  scriptPhase("Start upgrade", ({ node, reference }) => ({
    name: "e2e-start-upgrade",
    text: startUpgradeScript(upgrade, node.role, source),
    task: "starting the upgrade",
    failure: `${reference}: cannot start the upgrade`,
    errorId: "upgrade-failed",
  }));
