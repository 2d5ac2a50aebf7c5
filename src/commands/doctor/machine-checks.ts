import { execFile } from "node:child_process";
import * as os from "node:os";
import { promisify } from "node:util";
import { ClusterError, hintOf, messageOf, revised } from "../../errors.ts";
import { optionName } from "../../references.ts";
import {
  type Check,
  type Outcome,
  fail,
  localCheck,
  pass,
  warn,
  isOlder,
} from "../../model/check.ts";
import { outside, unmarked } from "../../outside-text.ts";
import { findSsh, sshInstallation } from "../../ssh/find-ssh.ts";
import { stateFolder } from "../../store/state-folder.ts";
import { freeSpaceProblem } from "../../system/files/private-file.ts";
import { minimalEnvironment } from "../../system/processes/run-program.ts";
import type { Environment } from "../../system/runtime.ts";
import { variable } from "../../system/variable.ts";
import { stateFolderCheck } from "./state-folder.ts";

export function machineChecks(
  {
    environment,
    runtimeVariables,
  }: { readonly environment: Environment; readonly runtimeVariables: readonly string[] },
  own: readonly Check[],
): readonly Check[] {
  return [
    operatingSystemCheck({
      platform: os.platform(),
      release: os.release(),
      architecture: os.arch(),
    }),
    runtimeVariablesCheck(runtimeVariables),
    sshClientCheck(environment),
    stateFolderCheck(stateFolder(environment), environment),
    temporarySpaceCheck(variable(environment, "TMPDIR") ?? "/tmp", neededBytes),
    ...own,
    browserCheck(os.platform(), environment),
  ];
}

/** Throws `machine-not-set-up` without a usable `ssh` on the PATH: a created cluster needs it to reach its nodes. */
export function assertSshClient(environment: Environment): void {
  try {
    findSsh(environment);
  } catch (error) {
    if (!(error instanceof ClusterError)) throw error;
    throw revised(error, { hint: `${hintOf(error) ?? ""} Nothing was created.` });
  }
}

/** Checks for `ssh` on the PATH. The program's own connections don't need it; `run` uses it. */
export const sshClientCheck = (environment: Environment): Check =>
  localCheck("ssh", async (signal) => findClient(environment, signal));

async function findClient(environment: Environment, signal: AbortSignal): Promise<Outcome> {
  let path = "ssh";
  try {
    path = findSsh(environment);
    // OpenSSH prints its version to stderr.
    const { stdout, stderr } = await promisify(execFile)(path, ["-V"], {
      env: { ...minimalEnvironment(environment) },
      signal,
    });
    const version = `${stderr}${stdout}`.trim().split("\n")[0] ?? "";
    return version.startsWith("OpenSSH")
      ? pass(`${outside(version)} (${path})`)
      : warn(
          `${path} is not OpenSSH: its version is "${outside(version.slice(0, 100))}".`,
          sshInstallation,
        );
  } catch (error) {
    signal.throwIfAborted();
    const reason = messageOf(error);
    if (error instanceof ClusterError) return fail(reason, hintOf(error) ?? sshInstallation);
    return fail(
      `Cannot run ${path}: ${outside(unmarked(reason).trim().replace(/\.$/, ""))}.`,
      sshInstallation,
    );
  }
}

const screens = ["DISPLAY", "WAYLAND_DISPLAY"];

/**
 * Checks for the program with which `web` opens the web UI. It is only a convenience, because `web`
 * also prints the address.
 */
export const browserCheck = (system: string, environment: Environment): Check =>
  localCheck("browser", async () => findOpener(system, environment));

function findOpener(system: string, environment: Environment): Outcome {
  const opener = system === "darwin" ? "open" : "xdg-open";
  const path = Bun.which(opener, { PATH: environment["PATH"] ?? "" });
  const otherwise = "or open the URL that web prints in a browser on another computer.";
  if (path === null) {
    return warn(
      `web cannot open a browser: there is no ${opener} on the PATH.`,
      `Install it (xdg-utils on most Linux distributions), ${otherwise}`,
    );
  }
  const hasScreen =
    system === "darwin" || screens.some((name) => variable(environment, name) !== undefined);
  if (!hasScreen) {
    return warn(
      `web cannot open a browser: no ${screens.join(" or ")} is set.`,
      `Use a graphical session, ${otherwise}`,
    );
  }
  return pass(`web opens the web UI with ${path}`);
}

/** The space that `create` may need if the nodes cannot download the artifact themselves. */
const neededBytes = 2_000_000_000;

export const temporarySpaceCheck = (folder: string, bytes: number): Check =>
  localCheck("temporary space", async () => {
    const remedy = `Free some space, set TMPDIR to another folder, or pass create another ${optionName("workspaceDir")}.`;
    const unusable = await freeSpaceProblem(folder, 0);
    if (unusable !== undefined) return fail(unusable, remedy);
    // A platform's folder, such as that of an example, needs no more than its own size.
    const lack = await freeSpaceProblem(folder, bytes);
    return lack === undefined
      ? pass(`${folder} has the ${bytes / 1e9} GB of free space that create may need`)
      : warn(lack, `A large artifact takes that much. ${remedy}`);
  });

/**
 * Checks variables that the Bun inside an executable obeys before any of our code runs, such as
 * options that write profiles. BUN_BE_BUN isn't checked: if it takes effect, Bun runs instead of
 * this check.
 */
function runtimeVariablesCheck(inherited: readonly string[]): Check {
  const names = inherited.filter((name) => name !== "BUN_BE_BUN");
  const outcome =
    names.length === 0
      ? pass("No environment variable changes how this program runs")
      : warn(
          `${names.join(" and ")} ${names.length === 1 ? "is set, which changes" : "are set, which change"} how this program runs.`,
          `Find out who set ${names.length === 1 ? "it" : "them"}, and run: unset ${names.join(" ")}`,
        );
  return localCheck("runtime", async () => outcome);
}

export interface OperatingSystem {
  /** Like `process.platform`: `linux`, `darwin`. */
  readonly platform: string;
  /** For example `6.1.0-18-amd64`. */
  readonly release: string;
  /** For example `x64`. */
  readonly architecture: string;
}

interface SupportedSystem {
  readonly name: string;
  /** The oldest supported kernel release. */
  readonly least: readonly [number, number];
  readonly leastText: string;
}

/** https://bun.com/docs/installation#system-requirements */
const supportedSystems: Readonly<Record<string, SupportedSystem>> = {
  linux: { name: "Linux", least: [5, 1], leastText: "5.1" },
  darwin: { name: "macOS (Darwin)", least: [22, 0], leastText: "22.0 (macOS 13)" },
};

export const operatingSystemCheck = (system: OperatingSystem): Check =>
  localCheck("operating system", async () => judge(system));

function judge({ platform, release, architecture }: OperatingSystem): Outcome {
  const supported = supportedSystems[platform];
  if (supported === undefined) {
    return warn(
      `This program is tested on Linux and macOS, not on ${platform}.`,
      "Use a virtual machine with Linux.",
    );
  }
  const { name, least, leastText } = supported;
  if (isOlder(release, least)) {
    return warn(
      `${name} ${release} is older than ${leastText}, the oldest release that this program's runtime, Bun, supports.`,
      "Use a newer system: here, commands may fail in untested ways.",
    );
  }
  return pass(`${name} ${release} on ${architecture}`);
}
