import { unmarked } from "../../src/outside-text.ts";
import type { Backend, BackendKind } from "../../src/backend/contract.ts";
import type { Context, Result, Source } from "../../src/cli/command.ts";
import { withoutHabits } from "../../src/cli/habits.ts";
import { flagNames, Problems } from "../../src/cli/options/problems.ts";
import { parseCommandLine } from "../../src/cli/options/parse.ts";
import { programFor } from "../../src/commands/program.ts";
import type { Clock } from "../../src/system/runtime.ts";
import { silentProgress } from "./silent-progress.ts";
import { neverAborted } from "./never-aborted.ts";
import { assertInSchema } from "./results-schema.ts";

interface CommandRun {
  readonly status: number;
  readonly stdout: string;
  readonly data: Result["data"] | undefined;
  /** Notes and warnings, in order. */
  readonly told: readonly string[];
  readonly asked: readonly string[];
  /** The lines of commands' output, behind the name of their source, if there is one. */
  readonly lines: readonly string[];
  /** The exit code that the command asked for in case it fails. */
  readonly failureExitCode: number | undefined;
}

interface CommandSetting {
  readonly kind: BackendKind;
  readonly backend: Partial<Backend<unknown>>;
  readonly nowMs: number;
  /** Default: a clock that stands at `nowMs`. */
  readonly clock?: Clock;
  readonly cwd?: string;
  readonly environment?: Readonly<Record<string, string>>;
  /** The answer to every question; undefined if there is no terminal to ask on. */
  readonly answer?: boolean;
  readonly isStdoutTerminal?: boolean;
  /** Default: 80. */
  readonly columns?: number;
  /** Whether the command is interrupted before it begins. */
  readonly isInterrupted?: boolean;
  /** Gets the notes and warnings, also those of a command that fails. */
  readonly told?: string[];
}

/** Runs a command of a kind's program in this process, with the test's backend. Throws usage errors. */
export async function runCommandLine(line: string, setting: CommandSetting): Promise<CommandRun> {
  const { kind, backend, nowMs, answer, cwd = "/tmp", environment = {} } = setting;
  const program = programFor({ ...kind, open: async () => backend } as BackendKind);
  const [name, ...argv] = await withoutHabits(program, line.split(" "));
  const command = program.commands.find((each) => each.name === name);
  if (command === undefined) throw new Error(`no command ${name}`);
  const [results, asked, lines]: [Result[], string[], string[]] = [[], [], []];
  const { told = [] } = setting;
  const failure: { exitCode: number | undefined } = { exitCode: undefined };
  const problems = new Problems("", flagNames(program));
  const invocation = { cwd, environment };
  const { values } = await parseCommandLine(command, argv, {
    invocation,
    problems,
    hide: () => {},
    habits: await program.habits?.(),
  });
  const { output: format, verbose } = values;
  const confirm = async (question: string): Promise<boolean> => {
    asked.push(question);
    return answer === true;
  };
  // Whoever is asked for a secret goes away.
  const readSecret = (prompt: string) => Promise.reject(new Error(`no answer to ${prompt}`));
  const context = {
    ...invocation,
    programName: program.name,
    programPath: `/usr/local/bin/${program.name}`,
    nameFlags: flagNames(program),
    clock: setting.clock ?? { now: () => nowMs, sleep: async () => {} },
    signal:
      setting.isInterrupted === true ? AbortSignal.abort(new Error("interrupted")) : neverAborted,
    progress: {
      ...silentProgress,
      timings: () => [{ title: "Launch", ms: 1_250 }],
      note: (text: string) => void told.push(unmarked(text)),
      warn: (text: string) => void told.push(`Warning: ${unmarked(text)}`),
    },
    output: {
      format: typeof format === "string" ? format : "text",
      result: (result: Result) => void results.push(result),
      isClosed: false,
      line: (_stream: string, source: Source | undefined, shown: string) =>
        void lines.push(source === undefined ? shown : `${source.name}: ${shown}`),
    },
    stdin: { confirm, readSecret },
    logPath: () => undefined,
    columns: setting.columns ?? 80,
    isTerminal: {
      stdin: answer !== undefined,
      stdout: setting.isStdoutTerminal === true,
      stderr: answer !== undefined,
    },
    verbosity: typeof verbose === "number" ? verbose : 0,
    runtimeVariables: [],
    dropVariables: () => {},
    onAbandon: () => ({ [Symbol.dispose]: () => {} }),
    failuresExitWith: (exitCode: number) => void (failure.exitCode = exitCode),
  } as unknown as Context;
  await command.check?.(values, problems, context);
  problems.throwIfAny();
  const status = (await command.run(values, context)) ?? 0;
  const [result] = results;
  // A plan is that of the test's own backend.
  if (result?.data !== undefined && !(command.name === "create" && "plan" in result.data)) {
    const printed: unknown = JSON.parse(JSON.stringify({ schemaVersion: 1, ...result.data }));
    assertInSchema(command.name, printed);
  }
  return {
    status,
    stdout: result?.text ?? "",
    data: result?.data,
    told,
    asked,
    lines,
    failureExitCode: failure.exitCode,
  };
}
