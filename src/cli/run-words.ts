import type { Program, ProcessLike } from "./command.ts";
import { completeWord } from "./completion-command.ts";
import { withoutHabits } from "./habits.ts";
import { programHelp } from "./help/help.ts";
import { pageWidth } from "./help/prepared-help-name.ts";
import { version } from "../version.ts";

/** The process. `print` writes text and a newline to stdout without touching the process's streams. */
interface Host {
  readonly host: ProcessLike;
  readonly print: (text: string) => Promise<void>;
}

export async function runWords(
  program: Program,
  typed: readonly string[],
  { host, print }: Host,
): Promise<void> {
  if (typed[0] === completeWord) return await answerShell(program, typed.slice(1), { host, print });
  const argv = typed.length === 0 ? ["--help"] : await withoutHabits(program, typed);
  const [first] = argv;
  if (first === "--help" || first === "-h")
    return print(programHelp(program, widthFor(host)).trimEnd());
  if (first === "--version" && argv.length === 1) return print(version);
  if (first === "--licenses") return print((await program.licenses()).trimEnd());
  await runCommand(program, argv, host);
}

/** Prints the completions for a shell. A user waits for each key press, so it loads little. */
async function answerShell(
  program: Program,
  argv: readonly string[],
  { host, print }: Host,
): Promise<void> {
  const { completionOffer } = await import("./completion.ts");
  const { lines, command } = completionOffer(program, argv, await program.habits?.());
  await print(lines.join("\n"));
  if (command === undefined) return;
  await runCommand(program, command, host);
}

async function runCommand(
  program: Program,
  argv: readonly string[],
  host: ProcessLike,
): Promise<void> {
  const [{ runCommandLine }, { openOutputs }] = await Promise.all([
    import("./run-command-line.ts"),
    import("./terminal.ts"),
  ]);
  await runCommandLine(program, argv, { host, outputs: await openOutputs() });
}

function widthFor(host: ProcessLike): number {
  const columns = Number(host.env["COLUMNS"] ?? "");
  return columns >= 40 ? Math.min(columns, pageWidth) : pageWidth;
}
