import { ClusterError, messageOf, quoted, systemReason } from "../errors.ts";
import { didYouMean, nearest } from "../model/rule.ts";
import { Masker } from "../system/masker.ts";
import { shownText } from "../system/printable.ts";
import { disableCoreDumps } from "../system/processes/core-dumps.ts";
import { version } from "../version.ts";
import type { Command, ProcessLike, Program } from "./command.ts";
import { type ErrorReport, lostOutputText, reportError } from "./error-report.ts";
import { helpOption, licensesOption, versionOption, commandHelp } from "./help/help.ts";
import { pageWidth } from "./help/prepared-help-name.ts";
import { wrap } from "./layout.ts";
import { readBytes } from "../system/files/read-text.ts";
import { replacement, utf8Text } from "../system/utf8.ts";
import { parseCommandLine, readWords } from "./options/parse.ts";
import { Problems, flagNames } from "./options/problems.ts";
import { type Run, type Session, openSession } from "./session.ts";
import { type Outputs, Terminal } from "./terminal.ts";

/**
 * These variables make any Bun executable run other code, behave as Bun itself or let others debug
 * it, so no child may inherit them.
 */
const scrubbed = /^BUN_(?:OPTIONS$|BE_BUN$|INSPECT)/;

/** Runs every command line that main doesn't answer itself. `argv` holds at least one word. */
export async function runCommandLine(
  program: Program,
  argv: readonly string[],
  { host, outputs }: { readonly host: ProcessLike; readonly outputs: Outputs },
): Promise<void> {
  // If the event loop runs dry while a command is still waiting, that is a bug, not a success.
  host.exitCode = 70;
  const found = Object.keys(host.env).filter((name) => scrubbed.test(name));
  const runtimeVariables = found.filter((name) => host.env[name] !== "");
  for (const name of found) delete host.env[name];
  const areDumpsDisabled = await disableCoreDumps();
  const environment = { ...host.env };
  // Bun would accept any certificate. Programs of the user's get it all the same.
  delete host.env["NODE_TLS_REJECT_UNAUTHORIZED"];
  const [terminal, masker] = [new Terminal(host, outputs), new Masker()];
  const run = { program, host, terminal, masker, runtimeVariables, areDumpsDisabled };
  try {
    const invocation = { cwd: currentFolder(host), environment };
    await runSelected(await selectCommand(program, argv), argv.slice(1), { ...run, invocation });
  } catch (error) {
    // This only reports failures before there was a command to run, so -v and --output are unknown.
    const report = reportError(error, { program, logPath: undefined });
    const text = shownText(report.text, (given) => masker.text(given));
    terminal.write("stderr", `${wrap(text, terminal.columns("stderr"), 2).join("\n")}\n`);
    host.exitCode = report.exitCode;
  }
  await terminal.flush();
}

function currentFolder(host: ProcessLike): string {
  try {
    return host.cwd();
  } catch (error) {
    throw new ClusterError("machine-not-set-up", "The current folder was removed, or is closed.", {
      hint: "Change to another folder, and run the command again.",
      cause: error,
    });
  }
}

async function selectCommand(program: Program, argv: readonly string[]): Promise<Command> {
  const [name = ""] = argv;
  const command = program.commands.find((each) => each.name === name);
  const problems = new Problems(`${program.name} --help`);
  const changed = await changedArguments(argv, new AbortController().signal);
  if (changed !== undefined) problems.add(changed);
  problems.throwIfAny();
  if (command !== undefined) return command;
  if (name.startsWith("-")) {
    const { positionals, problems: found } = readWords(
      [helpOption, versionOption, licensesOption],
      argv,
      true,
    );
    for (const problem of found) problems.add(problem);
    if (positionals.length === 0 && found.length === 0) problems.add("COMMAND: required");
    problems.throwIfAny();
    // The program's options can't be combined with anything, so the word after them can't be a command.
    problems.add(`${name}: cannot be combined with anything else`);
  } else {
    const names = program.commands.map((each) => each.name);
    const known = program.missingCommands?.get(name) ?? (await program.habits?.())?.hints.get(name);
    const advice = known === undefined ? didYouMean(nearest(name, names)) : `; ${known}`;
    problems.add(`${quoted(name)}: no such command${advice}`);
  }
  problems.throwIfAny();
  throw new Error("unreachable: a problem was added above");
}

const mostArgumentBytes = 8 * 1024 * 1024;

/**
 * Returns the problem if some of the program's arguments have reached it with other bytes than were
 * typed. Where the system doesn't show the bytes, an argument with the replacement's character
 * counts as changed.
 */
async function changedArguments(
  argv: readonly string[],
  signal: AbortSignal,
): Promise<string | undefined> {
  if (!argv.some((word) => word.includes(replacement))) return undefined;
  const bytes = await readBytes("/proc/self/cmdline", mostArgumentBytes, signal).catch(
    () => undefined,
  );
  if (bytes !== undefined && utf8Text(bytes) !== undefined) return undefined;
  return "the arguments: some bytes are not UTF-8, and would change; pass such bytes over stdin or in a file";
}

async function runSelected(command: Command, argv: readonly string[], run: Run): Promise<void> {
  const { program, host, terminal, masker, invocation } = run;
  const problems = new Problems(`${program.name} ${command.name} --help`, flagNames(program));
  const hide = (secret: string): void => masker.hide(secret);
  const { isHelpWanted, values } = await parseCommandLine(command, argv, {
    invocation,
    problems,
    hide,
    habits: await program.habits?.(),
  });
  if (isHelpWanted) {
    terminal.write(
      "stdout",
      commandHelp(program, command, Math.min(terminal.columns("stdout"), pageWidth)),
    );
    await terminal.flush();
    const { stdoutFailure } = terminal;
    if (stdoutFailure !== undefined) terminal.write("stderr", `${lostOutputText(stdoutFailure)}\n`);
    host.exitCode = stdoutFailure === undefined ? 0 : 1;
    return;
  }
  const { output, verbose } = values;
  const format = typeof output === "string" ? output : "text";
  const verbosity = typeof verbose === "number" ? verbose : 0;
  const session = openSession({ ...run, format, verbosity, nameFlags: flagNames(program, values) });
  session.log.write(`${program.name} ${headingOf(command, values)} (version ${version})`);
  if (!run.areDumpsDisabled)
    session.progress.detail(1, "Cannot disable core dumps: a crash may write secrets to one");
  const work = async (): Promise<number> => {
    await check(command, values, problems, session);
    const words = [command.name, ...argv];
    return (await command.run(values, { ...session.context, words })) ?? 0;
  };
  const [outcome] = await Promise.allSettled([work()]);
  await finish(outcome, session, run);
}

/**
 * The words of the command line that can't be secrets, unlike values of --env and the like: an
 * action, and its nodes.
 */
function headingOf({ name }: Command, values: Readonly<Record<string, unknown>>): string {
  const words = [values["action"], values["nodes"]].flat();
  return [name, ...words.filter((each) => typeof each === "string")].join(" ");
}

/** All problems are reported together, so an error thrown by `check` must not hide the problems found before it. */
async function check(
  command: Command,
  values: Readonly<Record<string, unknown>>,
  problems: Problems,
  session: Session,
): Promise<void> {
  try {
    await command.check?.(values, problems, session.context);
  } catch (error) {
    if (error instanceof ClusterError && error.id === "bad-usage" && problems.all.length > 0)
      problems.add(messageOf(error));
    problems.throwIfAny();
    throw error;
  }
  problems.throwIfAny();
}

async function finish(
  outcome: PromiseSettledResult<number>,
  session: Session,
  run: Run,
): Promise<void> {
  const { context, interrupts, progress, output, log, failureExitCode } = session;
  const { interruption } = interrupts;
  const circumstances = {
    program: run.program,
    nameFlags: context.nameFlags,
    logPath: log.path,
    interruption,
  };
  progress.finish();
  const settled = interrupts.crash ?? outcome;
  const report =
    settled.status === "rejected" ? reportError(settled.reason, circumstances) : undefined;
  // A command that finished just as it was interrupted still ends by the signal, but it has not failed.
  if (report !== undefined) printReport(report, session, run);
  output.finish(report?.data);
  await run.terminal.flush();
  run.host.exitCode =
    settled.status === "fulfilled" ? settled.value : (failureExitCode.current ?? report?.exitCode);
  if (run.terminal.stdoutFailure !== undefined && report === undefined)
    await reportLostOutput(session, run);
  log.close();
  if (interruption === undefined) interrupts.close();
  else interrupts.raise(interruption.signalName);
}

/** Reports that the command has ended but its output is lost, for example with `> /dev/full`. */
async function reportLostOutput(session: Session, run: Run): Promise<void> {
  const where = "Check where stdout is redirected.";
  const loss = new ClusterError(
    "output-lost",
    `Cannot write the result: ${systemReason(run.terminal.stdoutFailure)}.`,
    {
      hint:
        run.host.exitCode === 0
          ? `The command succeeded; only its output is lost. ${where}`
          : where,
    },
  );
  const report = reportError(loss, { program: run.program, logPath: session.log.path });
  printReport(report, session, run);
  await run.terminal.flush();
  run.host.exitCode = session.failureExitCode.current ?? report.exitCode;
}

function printReport(
  report: ErrorReport,
  session: Session,
  { terminal, masker }: Pick<Run, "terminal" | "masker">,
): void {
  const shown = (text: string): string => shownText(text, (given) => masker.text(given));
  session.log.write(shown(`${report.text}\n${report.stack}`));
  const { red, bold } = session.colours;
  const lines = wrap(shown(report.text), terminal.columns("stderr"), 2).join("\n");
  terminal.screen.write(`${lines.replace(/^Error:/, (word) => bold(red(word)))}\n`);
  if (session.context.verbosity >= 2) terminal.write("stderr", `${shown(report.stack)}\n`);
}
