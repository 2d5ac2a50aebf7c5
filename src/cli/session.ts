import type { Masker } from "../system/masker.ts";
import { systemClock } from "../system/runtime.ts";
import { variable } from "../system/variable.ts";
import type { Context, ProcessLike, Program } from "./command.ts";
import { Interrupts } from "./interrupts.ts";
import { LogFile } from "./log-file.ts";
import type { Invocation } from "./options/option.ts";
import type { NameFlags } from "./options/problems.ts";
import { type Terminal, answers } from "./terminal.ts";
import { OutputWriter } from "./terminal/output-writer.ts";
import {
  type Colours,
  isColoured,
  isLive,
  noColours,
  terminalColours,
} from "./terminal/colours.ts";
import { TerminalProgress } from "./terminal/terminal-progress.ts";

export interface Session {
  readonly context: Context;
  readonly progress: TerminalProgress;
  readonly output: OutputWriter;
  readonly interrupts: Interrupts;
  readonly log: LogFile;
  /** Colours for stderr. */
  readonly colours: Colours;
  /** The exit code of any failure, if the command has set one. */
  readonly failureExitCode: { current: number | undefined };
}

/** One run of the program, before it has read the command's options. */
export interface Run {
  readonly program: Program;
  readonly host: ProcessLike;
  readonly terminal: Terminal;
  readonly masker: Masker;
  readonly invocation: Invocation;
  readonly runtimeVariables: readonly string[];
  readonly areDumpsDisabled: boolean;
}

interface SessionParts extends Run {
  readonly format: string;
  /** The number of times `-v` was given. */
  readonly verbosity: number;
  readonly nameFlags: NameFlags;
}

export function openSession(parts: SessionParts): Session {
  const log = new LogFile(systemClock);
  // Signals may arrive while progress is printed. `interrupts` and `progress` refer to each other,
  // so the listeners look `progress` up when they run.
  const interrupts: Interrupts = new Interrupts(parts.host, {
    onFirst: () => progress.note("Interrupted: cleaning up (interrupt again to stop at once)"),
    onAbandoned: (remains) => {
      progress.settle();
      for (const text of remains) progress.note(text);
    },
    onCrash: () => progress.note("Internal error: cleaning up (interrupt to stop at once)"),
  });
  const areWanted = isColoured(parts.invocation.environment);
  const coloursOf = (stream: "stdout" | "stderr"): Colours =>
    areWanted && parts.terminal.isTerminal(stream) ? terminalColours : noColours;
  const colours = coloursOf("stderr");
  const progress: TerminalProgress = openProgress(parts, { log, interrupts, colours });
  const output = openOutput(parts, progress, { stdout: coloursOf("stdout"), stderr: colours });
  const failureExitCode: Session["failureExitCode"] = { current: undefined };
  const context: Context = {
    ...parts.invocation,
    programName: parts.program.name,
    programPath: programPath(parts),
    nameFlags: parts.nameFlags,
    clock: systemClock,
    runtimeVariables: parts.runtimeVariables,
    signal: interrupts.signal,
    progress,
    output,
    stdin: openStdin(parts, progress, interrupts),
    columns: parts.terminal.columns("stdout"),
    isTerminal: {
      stdin: parts.terminal.isTerminal("stdin"),
      stdout: parts.terminal.isTerminal("stdout"),
      stderr: parts.terminal.isTerminal("stderr"),
    },
    verbosity: parts.verbosity,
    logPath: () => log.path,
    dropVariables: (isNeeded) => {
      for (const name of Object.keys(parts.host.env))
        if (!isNeeded(name)) delete parts.host.env[name];
    },
    onAbandon: (describe) => interrupts.onAbandon(describe),
    failuresExitWith: (exitCode) => {
      failureExitCode.current = exitCode;
    },
  };
  return { context, progress, output, interrupts, log, colours, failureExitCode };
}

/**
 * A compiled program is one file. The launcher of a package names itself, because it starts our
 * sources with options.
 */
function programPath({ host, invocation }: SessionParts): string {
  const [, script = ""] = host.argv;
  if (script.startsWith("/$bunfs/")) return host.execPath;
  return variable(invocation.environment, "CLUSTER_E2E_LAUNCHER") ?? script;
}

function openProgress(
  { terminal, masker, verbosity, invocation, nameFlags }: SessionParts,
  { log, interrupts, colours }: Pick<Session, "log" | "interrupts" | "colours">,
): TerminalProgress {
  return new TerminalProgress({
    screen: terminal.screen,
    isLive: terminal.isTerminal("stderr") && isLive(invocation.environment),
    verbosity,
    clock: systemClock,
    colours,
    masker,
    nameFlags,
    log,
    isInterrupted: () => interrupts.interruption !== undefined,
  });
}

function openOutput(
  { format, masker, terminal }: SessionParts,
  progress: TerminalProgress,
  colours: Readonly<Record<"stdout" | "stderr", Colours>>,
): OutputWriter {
  return new OutputWriter({
    format,
    colours,
    paint: (stream, text) => {
      progress.settle();
      return terminal.paint(stream, text);
    },
    isClosed: () => terminal.isClosed("stdout"),
    mask: (text) => masker.text(text),
    write: (text) => {
      progress.settle();
      terminal.write("stdout", text);
    },
    writePainted: (text) => {
      progress.settle();
      terminal.writePainted("stdout", text);
    },
  });
}

function openStdin(
  { terminal, masker, invocation }: SessionParts,
  progress: TerminalProgress,
  interrupts: Interrupts,
): Context["stdin"] {
  return answers({
    isTerminal: terminal.isTerminal("stdin"),
    environment: invocation.environment,
    ask: (prompt) => {
      progress.settle();
      terminal.write("stderr", prompt);
    },
    hide: (secret) => masker.hide(secret),
    onAbandon: (undo) => interrupts.onAbandon(undo),
  });
}
