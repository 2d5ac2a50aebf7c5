import { version } from "../version.ts";
import type { Program, ProcessLike } from "./command.ts";
import { preparedHelpName } from "./help/prepared-help-name.ts";

/**
 * Runs the program that the process was started as. An executable only calls `await
 * runProgram(load, process)`. It never throws and never ends the process. Instead it sets the exit
 * code, or sends the process the same signal again after an interrupt, so that all output arrives.
 */
export async function runProgram(load: () => Promise<Program>, host: ProcessLike): Promise<void> {
  const argv = host.argv.slice(2);
  // Scripts and people run these all the time. They are answered before anything else is loaded,
  // and without touching the process's streams, which alone would double the time.
  const print = async (text: string): Promise<void> => printAll(`${text}\n`, host);
  if (argv[0] === "--version") return print(version);
  const help = await findPreparedHelp(argv, host);
  if (help !== undefined) return print(help);
  const [{ runWords }, program] = await Promise.all([import("./run-words.ts"), load()]);
  await runWords(program, argv, { host, print });
}

/**
 * Writes to stdout without touching the process's streams or loading `node:fs`. A reader that
 * closes stdout early is not a failure.
 */
async function printAll(text: string, host: ProcessLike): Promise<void> {
  try {
    // Bun has opened the null device in place of a closed stdout. To read more about it takes threads.
    if (Bun.file(1).lastModified === Bun.file("/dev/null").lastModified) await assertOpen();
    await Bun.write(Bun.stdout, text);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EPIPE") return;
    console.error((await import("./error-report.ts")).lostOutputText(error));
    host.exitCode = 1;
  }
}

async function assertOpen(): Promise<void> {
  const closed = await import("../system/processes/closed-descriptor.ts");
  const info = await Bun.file(closed.descriptorInfo(1))
    .text()
    .catch(() => "");
  if (closed.wasClosed(info)) throw closed.closedError();
}

/** Returns the help that the build has prepared, if these words request it and it fits stdout. */
async function findPreparedHelp(
  argv: readonly string[],
  host: ProcessLike,
): Promise<string | undefined> {
  const name = preparedHelpName(argv, host);
  if (name === undefined) return undefined;
  const { preparedHelp } = await import("./help/prepared-help.ts");
  return preparedHelp.get(name);
}
