import { ClusterError } from "../../../errors.ts";
import { moreDetail, optionName } from "../../../references.ts";
import { outside } from "../../../outside-text.ts";
import { plainLine, plainLines, withoutFullStop } from "../../../system/printable.ts";
import {
  type ProgramEnd,
  type ProgramRun,
  minimalEnvironment,
  runWithin,
} from "../../../system/processes/run-program.ts";
import type { Runtime } from "../../../system/runtime.ts";
import type { Architecture } from "./architecture.ts";

/** A busy computer, or one with a slow disk, takes a minute for what usually takes a moment. */
const limitMs = 10 * 60_000;

/**
 * QEMU's programs. The methods resolve with any exit status. A missing program, and one that
 * doesn't end, are ClusterErrors.
 */
export interface Qemu {
  readonly architecture: Architecture;
  readonly systemName: string;
  system(words: readonly string[], signal: AbortSignal): Promise<ProgramEnd>;
  /** Runs it with a working folder, stdin, or a listener for its output. */
  run(run: QemuRun, signal: AbortSignal): Promise<ProgramEnd>;
  image(words: readonly string[], signal: AbortSignal): Promise<ProgramEnd>;
}

interface QemuRun extends Pick<ProgramRun, "cwd" | "stdin" | "onOutput"> {
  readonly words: readonly string[];
}

type QemuRuntime = Pick<Runtime, "environment" | "progress">;

export function openQemu({ environment, progress }: QemuRuntime, architecture: Architecture): Qemu {
  const systemName = `qemu-system-${architecture.name}`;
  const runIt = async (
    program: string,
    { words, ...more }: QemuRun,
    signal: AbortSignal,
  ): Promise<ProgramEnd> => {
    progress.detail(2, `${program} ${outside(words.join(" "))}`);
    const run = {
      argv: [program, ...words] as const,
      environment: minimalEnvironment(environment),
      ...more,
    };
    const limits = {
      limitMs,
      tooSlow: () => tooSlow(program),
      missing: (cause: unknown) => programMissing(program, architecture, cause),
    };
    return await runWithin(run, limits, signal);
  };
  return {
    architecture,
    systemName,
    system: async (words, signal) => runIt(systemName, { words }, signal),
    run: async (run, signal) => runIt(systemName, run, signal),
    image: async (words, signal) => runIt("qemu-img", { words }, signal),
  };
}

/** Returns QEMU's version, such as `7.2.22`. Throws `machine-not-set-up` if there is no QEMU. */
export async function qemuVersion(qemu: Qemu, signal: AbortSignal): Promise<string> {
  const end = await qemu.system(["--version"], signal);
  const found = /version (\d+\.\d+\.\d+)/.exec(end.stdout)?.[1];
  if (found === undefined) throw qemuFailure(`${qemu.systemName} --version`, end);
  return found;
}

/** The form of saved memory changes with the first two numbers of the version; the third counts corrections. */
export const release = (version: string): string => version.split(".").slice(0, 2).join(".");

export function qemuFailure(what: string, { status, stderr, stdout }: ProgramEnd): ClusterError {
  const said =
    reasonIn(stderr) || reasonIn(stdout) || `it exited with status ${status ?? "unknown"}`;
  const facts = { command: what, status };
  if (/cannot allocate memory|cannot set up guest memory/i.test(stderr)) {
    return new ClusterError(
      "capacity-lacking",
      `This computer does not have enough memory: ${said}.`,
      {
        hint: `Use fewer nodes, or give them less memory with ${optionName("memory")}.`,
        facts,
      },
    );
  }
  if (/no space left on device|disk quota exceeded/i.test(stderr)) {
    return new ClusterError("capacity-lacking", `The disk is full: ${said}.`, {
      hint: "Free some space.",
      facts,
    });
  }
  return new ClusterError("engine-failed", `${what} failed: ${said}.`, {
    hint: `Run cluster-vm doctor to see what this computer lacks. ${moreDetail("-vv", "every command that was run")}`,
    facts,
  });
}

function programMissing(program: string, { packages }: Architecture, cause: unknown): ClusterError {
  return new ClusterError(
    "machine-not-set-up",
    `There is no executable program ${program} on the PATH.`,
    {
      hint: `Install QEMU, 7.2 or later (Debian and Ubuntu: sudo apt-get install ${packages}; macOS: brew install qemu).`,
      facts: { program },
      cause,
    },
  );
}

export const installation = ({ architecture }: Qemu): string =>
  `Install a newer version or another build (Debian and Ubuntu: ${architecture.packages}).`;

const tooSlow = (program: string): ClusterError =>
  new ClusterError("deadline-passed", `${program} exceeded its limit of ${limitMs / 1000} s.`, {
    hint: "Check whether this computer's disk is slow or full.",
    facts: { program },
  });

/** Whether QEMU refuses a file because another program has it open. */
export const isLocked = ({ stderr }: Pick<ProgramEnd, "stderr">): boolean =>
  /Failed to get (?:shared )?"[\w ]+" lock/.test(stderr);

/** The last line, or the one before a question that QEMU adds. */
const reasonIn = (text: string): string => {
  const said = plainLines(text, 2).findLast((line) => !line.startsWith("Is another process using"));
  return withoutFullStop(outside((said ?? "").replace(/^qemu[\w-]*: /, "")));
};

/** QEMU's option lists require a doubled comma. */
export const escaped = (text: string): string => text.replaceAll(",", ",,");

/**
 * Returns the lines of QEMU's stderr that say what is wrong, at most `count` of them. Leaves out
 * QEMU's name at the start of a line, warnings, and register dumps. Returns `undefined` if no lines
 * remain.
 */
export function qemuMessage(stderr: string, count: number): string | undefined {
  const lines = stderr
    .split("\n")
    .map((line) => line.replace(/^qemu[\w-]*: (?:(?:-accel \w+|error): )?/, "").trim());
  const said = lines
    .filter((line) => line !== "" && !isBesideThePoint(line))
    .slice(0, count)
    .map((line) => withoutFullStop(plainLine(line)));
  return said.length === 0 ? undefined : said.join("; ");
}

const isBesideThePoint = (line: string): boolean =>
  /^(?:-.*: )?warning: |^extra data\[|^terminating on signal |^[A-Z][A-Z0-9]+ *=|^Code=/.test(line);
