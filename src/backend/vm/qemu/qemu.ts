import { ClusterError } from "../../../errors.ts";
import { minimalEnvironment } from "../../../system/processes/child-environment.ts";
import type { Environment } from "../../../system/environment.ts";
import { errorCode } from "../../../system/error-code.ts";
import type { Progress } from "../../../system/progress.ts";
import { type ProgramEnd, type ProgramRun, runProgram } from "../../../system/processes/run-program.ts";
import type { Architecture } from "./architecture.ts";

const limitMs = 60_000;

/** QEMU's programs. The methods resolve with any exit status. A missing program, and one that doesn't end, are ClusterErrors. */
export interface Qemu {
  /** The architecture of all its machines. */
  readonly architecture: Architecture;
  /** The name of the system emulator's program. */
  readonly systemName: string;
  system(words: readonly string[], signal: AbortSignal): Promise<ProgramEnd>;
  /** Does the same with a working folder, stdin, or a listener for its output. */
  run(run: QemuRun, signal: AbortSignal): Promise<ProgramEnd>;
  /** Runs `qemu-img`. */
  image(words: readonly string[], signal: AbortSignal): Promise<ProgramEnd>;
}

interface QemuRun extends Pick<ProgramRun, "cwd" | "stdin" | "onOutput"> {
  readonly words: readonly string[];
}

interface QemuSurroundings {
  readonly environment: Environment;
  readonly progress: Progress;
}

export function openQemu(surroundings: QemuSurroundings, architecture: Architecture): Qemu {
  const systemName = `qemu-system-${architecture.name}`;
  const runIt = async (program: string, run: QemuRun, signal: AbortSignal): Promise<ProgramEnd> => {
    const limit = AbortSignal.timeout(limitMs);
    try {
      return await startProgram(surroundings, program, run, AbortSignal.any([signal, limit]));
    } catch (error) {
      signal.throwIfAborted();
      if (limit.aborted) throw tooSlow(program);
      if (errorCode(error) === "ENOENT" || errorCode(error) === "EACCES") {
        throw programMissing(program, architecture, error);
      }
      throw error;
    }
  };
  return {
    architecture,
    systemName,
    system: async (words, signal) => runIt(systemName, { words }, signal),
    run: async (run, signal) => runIt(systemName, run, signal),
    image: async (words, signal) => runIt("qemu-img", { words }, signal),
  };
}

async function startProgram(
  { environment, progress }: QemuSurroundings,
  program: string,
  { words, ...more }: QemuRun,
  signal: AbortSignal,
): Promise<ProgramEnd> {
  progress.detail(2, `${program} ${words.join(" ")}`);
  return await runProgram({ argv: [program, ...words], environment: minimalEnvironment(environment), ...more }, signal);
}

/** Returns QEMU's version, such as [7, 2]. Throws `machine-not-set-up` if there is no QEMU. */
export async function qemuVersion(qemu: Qemu, signal: AbortSignal): Promise<readonly [number, number]> {
  const end = await qemu.system(["--version"], signal);
  const [, major, minor] = /version (\d+)\.(\d+)/.exec(end.stdout) ?? [];
  if (major === undefined) throw qemuFailure(`${qemu.systemName} --version`, end);
  return [Number(major), Number(minor)];
}

/** Returns the error for a QEMU that failed, with the last line that it printed. */
export function qemuFailure(what: string, { status, stderr, stdout }: ProgramEnd): ClusterError {
  const said = lastLine(stderr) || lastLine(stdout) || `it ended with status ${status ?? "unknown"}`;
  const facts = { command: what, status };
  if (/cannot allocate memory|cannot set up guest memory/i.test(stderr)) {
    return new ClusterError("capacity-lacking", `This machine has not enough memory: ${said}.`, {
      hint: "Use fewer nodes, or give them less with `memory`.",
      facts,
    });
  }
  if (/no space left on device/i.test(stderr)) {
    return new ClusterError("capacity-lacking", `The disk is full: ${said}.`, { hint: "Make room.", facts });
  }
  return new ClusterError("engine-failed", `${what} failed: ${said}.`, {
    hint: "With -vv every command is shown as it was given; cluster-vm doctor tells what this machine lacks.",
    facts,
  });
}

function programMissing(program: string, { packages }: Architecture, cause: unknown): ClusterError {
  return new ClusterError("machine-not-set-up", `There is no program ${program} on the PATH that can be run.`, {
    hint: `Install QEMU, 7.2 or later (Debian and Ubuntu: sudo apt-get install ${packages}; macOS: brew install qemu).`,
    facts: { program },
    cause,
  });
}

const tooSlow = (program: string): ClusterError =>
  new ClusterError("deadline-passed", `${program} took longer than ${limitMs / 1000} s.`, {
    hint: "See whether this machine's disk is slow, or full.",
    facts: { program },
  });

/** Removes the program's name from the start of the line and the full stop from its end. */
const lastLine = (text: string): string =>
  (text.trim().split("\n").at(-1) ?? "").replace(/^qemu[\w-]*: /, "").replace(/[.\s]+$/, "");

/** QEMU's option lists require a doubled comma. */
export const escaped = (text: string): string => text.replaceAll(",", ",,");
