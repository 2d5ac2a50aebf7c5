import { version } from "../version.ts";
import type { Program } from "./command.ts";
import type { ProcessLike } from "./process-like.ts";

/**
 * Runs the program that the process was started as. An executable only calls `await runProgram(load, process)`. It never throws and never ends the
 * process. Instead it sets the exit code, or sends the process the same signal again after an interrupt, so that all output arrives.
 */
export async function runProgram(load: () => Promise<Program>, host: ProcessLike): Promise<void> {
  const argv = host.argv.slice(2);
  // Scripts and people ask for these all the time. The answers come before anything else is loaded, and without touching the process's streams, which
  // alone would double the time.
  if (argv[0] === "--version") return console.log(version);
  const help = await findPreparedHelp(argv, host);
  if (help !== undefined) return console.log(help);
  const [{ runWords }, program] = await Promise.all([import("./run-words.ts"), load()]);
  await runWords(program, argv, { host, print: (text) => console.log(text) });
}

/** Returns the help that was prepared by the build, if that is what these words ask for and what this output shows. */
async function findPreparedHelp(
  [first = "--help", ...rest]: readonly string[],
  host: ProcessLike,
): Promise<string | undefined> {
  const isForProgram = isHelp(first);
  if (!isForProgram && !(rest.length === 1 && rest.every(isHelp))) return undefined;
  const fits = isForProgram ? !(Number(host.env["COLUMNS"]) < 100) : isOffTerminal(host);
  if (!fits) return undefined;
  const { preparedHelp } = await import("./help/prepared-help.ts");
  const name = isForProgram ? "" : first;
  return Object.hasOwn(preparedHelp, name) ? preparedHelp[name] : undefined;
}

const isHelp = (word: string): boolean => word === "--help" || word === "-h";

/**
 * Whether stdout certainly is no terminal, whose width a command's help would fit. Asks the system as node:tty does, without loading node:tty, which
 * takes as long as all the rest together in Bun 1.4.4. Where that way is closed, the usual one is taken.
 */
function isOffTerminal(host: ProcessLike): boolean {
  try {
    return host.binding?.("tty_wrap").isTTY?.(1) === false;
  } catch {
    return false;
  }
}
