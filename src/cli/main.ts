import { version } from "../version.ts";
import type { Program } from "./command.ts";
import { completeWord } from "./completion/completion-script.ts";
import { programHelp } from "./help/help.ts";
import type { ProcessLike } from "./process-like.ts";

const widthOffTerminal = 100;

/**
 * Runs the program that the process was started as. An executable only calls `await runProgram(program, process)`. It never throws and never ends the
 * process. Instead it sets the exit code, or sends the process the same signal again after an interrupt, so that all output arrives.
 */
export async function runProgram(program: Program, host: ProcessLike): Promise<void> {
  const argv = host.argv.slice(2);
  const [first] = argv;
  // Scripts and shells run these two all the time. They answer before anything else is loaded, and without touching the process's streams, which
  // alone would double the time.
  if (first === "--version") return console.log(version);
  if (first === undefined || first === "--help" || first === "-h") {
    return console.log(programHelp(program, helpWidth(host)).trimEnd());
  }
  if (first === "--licenses") return console.log((await program.licenses()).trimEnd());
  if (first === completeWord) return await answerShell(program, argv.slice(1), host);
  const { runCommandLine } = await import("./run-command-line.ts");
  await runCommandLine(program, argv, host);
}

/** Answers a key press in a shell, so a user is waiting. */
async function answerShell(program: Program, argv: readonly string[], host: ProcessLike): Promise<void> {
  const { completionOffer } = await import("./completion/completion-offer.ts");
  const { lines, command } = completionOffer(program, argv);
  console.log(lines.join("\n"));
  if (command === undefined) return;
  const { runCommandLine } = await import("./run-command-line.ts");
  await runCommandLine(program, command, host);
}

function helpWidth(host: ProcessLike): number {
  const columns = Number(host.env["COLUMNS"] ?? "");
  return columns >= 40 ? Math.min(columns, widthOffTerminal) : widthOffTerminal;
}
