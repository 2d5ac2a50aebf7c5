import { messageOf } from "../errors.ts";
import { outside, unmarked } from "../outside-text.ts";
import { arch, platform, release } from "node:os";
import type { Environment } from "../system/runtime.ts";
import { minimalEnvironment } from "../system/processes/child-environment.ts";
import { stateFolder } from "../system/files/state-folder.ts";
import { type Check, fail, localLimitMs, type Outcome, pass, warn } from "../model/check.ts";
import { operatingSystemCheck } from "./operating-system.ts";
import { stateFolderCheck } from "./state-folder.ts";
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { freeSpaceProblem } from "../system/files/free-space.ts";

interface Start {
  readonly environment: Environment;
  readonly runtimeVariables: readonly string[];
}

/** The checks that all backends need of this machine, combined with a backend's own checks. */
export function machineChecks({ environment, runtimeVariables }: Start, own: readonly Check[]): readonly Check[] {
  return [
    operatingSystemCheck({ platform: platform(), release: release(), architecture: arch() }),
    runtimeVariablesCheck(runtimeVariables),
    sshClientCheck(environment),
    stateFolderCheck(stateFolder(environment), environment),
    temporarySpaceCheck(environment["TMPDIR"] ?? "/tmp", neededBytes),
    ...own,
    browserCheck(platform(), environment),
  ];
}

const installation =
  "Install the OpenSSH client (Debian and Ubuntu: openssh-client; Fedora: openssh-clients; macOS includes it).";

/** Checks for `ssh` on the PATH. The program's own connections don't need it; `run` uses it. */
export function sshClientCheck(environment: Environment): Check {
  return { name: "ssh", limitMs: localLimitMs, run: (signal) => findClient(environment, signal) };
}

async function findClient(environment: Environment, signal: AbortSignal): Promise<Outcome> {
  const path = Bun.which("ssh", { PATH: environment["PATH"] ?? "" });
  if (path === null) return fail("There is no ssh on the PATH.", installation);
  try {
    // OpenSSH prints its version to stderr.
    const { stdout, stderr } = await promisify(execFile)(path, ["-V"], {
      env: { ...minimalEnvironment(environment) },
      signal,
    });
    const version = `${stderr}${stdout}`.trim().split("\n")[0] ?? "";
    return version.startsWith("OpenSSH")
      ? pass(`${outside(version)} (${path})`)
      : warn(`${path} is not OpenSSH: its version is "${outside(version.slice(0, 100))}".`, installation);
  } catch (error) {
    signal.throwIfAborted();
    const reason = messageOf(error);
    return fail(`Cannot run ${path}: ${outside(unmarked(reason).trim().replace(/\.$/, ""))}.`, installation);
  }
}

const screens = ["DISPLAY", "WAYLAND_DISPLAY"];

/** Checks for the program with which `web` opens the web UI. It is only a convenience, because `web` also prints the address. */
export function browserCheck(system: string, environment: Environment): Check {
  return { name: "browser", limitMs: localLimitMs, run: () => Promise.resolve(findOpener(system, environment)) };
}

function findOpener(system: string, environment: Environment): Outcome {
  const opener = system === "darwin" ? "open" : "xdg-open";
  const path = Bun.which(opener, { PATH: environment["PATH"] ?? "" });
  const otherwise = "or open the URL that web prints in a browser on another machine.";
  if (path === null) {
    return warn(
      `web cannot open a browser: there is no ${opener} on the PATH.`,
      `Install it (xdg-utils on most Linux distributions), ${otherwise}`,
    );
  }
  const hasScreen = system === "darwin" || screens.some((name) => (environment[name] ?? "") !== "");
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

export function temporarySpaceCheck(folder: string, bytes: number): Check {
  return {
    name: "temporary space",
    limitMs: localLimitMs,
    run: async () => {
      const problem = await freeSpaceProblem(folder, bytes);
      return problem === undefined
        ? pass(`${folder} has the ${bytes / 1e9} GB of free space that create may need`)
        : fail(problem, "Free some space, set TMPDIR to another folder, or pass create another `workspaceDir`.");
    },
  };
}

/**
 * Checks variables that the Bun inside an executable obeys before any of our code runs. Neither a build option nor our code can prevent this.
 * BUN_BE_BUN isn't checked: if it takes effect, Bun runs instead of this check.
 */
function runtimeVariablesCheck(inherited: readonly string[]): Check {
  const isSteered = inherited.includes("BUN_OPTIONS");
  const outcome = isSteered
    ? warn(
        "BUN_OPTIONS is set, which can make this program run other code.",
        "Find out who set it, and unset it: unset BUN_OPTIONS",
      )
    : pass("no variable changes how this program runs");
  return { name: "runtime", limitMs: localLimitMs, run: () => Promise.resolve(outcome) };
}
