import { ClusterError } from "../../errors.ts";
import type { Environment } from "../../system/environment.ts";
import { errorCode } from "../../system/error-code.ts";
import type { Progress } from "../../system/progress.ts";
import { type ProgramEnd, runProgram } from "../../system/run-program.ts";

const limitMs = 60_000;

type QemuProgram = "qemu-system-x86_64" | "qemu-img";

interface QemuRun {
  readonly program: QemuProgram;
  readonly words: readonly string[];
  readonly cwd?: string;
}

/** QEMU's programs. Any status resolves; that there is no such program, and that one doesn't end, are ClusterErrors. */
export type Qemu = (run: QemuRun, signal: AbortSignal) => Promise<ProgramEnd>;

export function openQemu({
  environment,
  progress,
}: {
  readonly environment: Environment;
  readonly progress: Progress;
}): Qemu {
  return async ({ program, words, cwd }, signal) => {
    progress.detail(2, `${program} ${words.join(" ")}`);
    const limit = AbortSignal.timeout(limitMs);
    try {
      const run = { argv: [program, ...words] as const, environment, ...(cwd !== undefined && { cwd }) };
      return await runProgram(run, AbortSignal.any([signal, limit]));
    } catch (error) {
      signal.throwIfAborted();
      if (limit.aborted) throw tooSlow(program);
      if (errorCode(error) === "ENOENT" || errorCode(error) === "EACCES") throw programMissing(program, error);
      throw error;
    }
  };
}

/** QEMU's version, such as [7, 2]. Throws `machine-not-set-up` where there is none. */
export async function qemuVersion(qemu: Qemu, signal: AbortSignal): Promise<readonly [number, number]> {
  const end = await qemu({ program: "qemu-system-x86_64", words: ["--version"] }, signal);
  const [, major, minor] = /version (\d+)\.(\d+)/.exec(end.stdout) ?? [];
  if (major === undefined) throw qemuFailure("qemu-system-x86_64 --version", end);
  return [Number(major), Number(minor)];
}

/** What is wrong with a QEMU that didn't do what it was asked for, by its own last words. */
export function qemuFailure(what: string, { status, stderr, stdout }: ProgramEnd): ClusterError {
  const said = lastLine(stderr) || lastLine(stdout) || `it ended with status ${status ?? "unknown"}`;
  const facts = { command: what, status };
  if (/cannot allocate memory|cannot set up guest memory/i.test(stderr)) {
    return new ClusterError("capacity-lacking", `This machine has not enough memory: ${said}.`, {
      hint: "Use fewer nodes, or give them less with --memory.",
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

function programMissing(program: QemuProgram, cause: unknown): ClusterError {
  return new ClusterError("machine-not-set-up", `There is no program ${program} on the PATH that can be run.`, {
    hint: "Install QEMU, 7.2 or later (Debian and Ubuntu: sudo apt-get install qemu-system-x86 qemu-utils; macOS: brew install qemu).",
    facts: { program },
    cause,
  });
}

const tooSlow = (program: QemuProgram): ClusterError =>
  new ClusterError("deadline-passed", `${program} took longer than ${limitMs / 1000} s.`, {
    hint: "See whether this machine's disk is slow, or full.",
    facts: { program },
  });

/** Without the program's name before it and the full stop after it. */
const lastLine = (text: string): string =>
  (text.trim().split("\n").at(-1) ?? "").replace(/^qemu[\w-]*: /, "").replace(/[.\s]+$/, "");
