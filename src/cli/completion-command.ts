import { defineCommand } from "./command.ts";
import bash from "./completion.bash" with { type: "text" };
import fish from "./completion.fish" with { type: "text" };
import zsh from "./completion.zsh" with { type: "text" };
import { argument } from "./options/option.ts";
import { choice } from "./options/value-types.ts";

/** The shells for which `completion` prints a script. */
const shells = ["bash", "zsh", "fish"] as const;
type Shell = (typeof shells)[number];

/** `completion bash|zsh|fish`, the same for every program. */
export const completionCommand = defineCommand({
  name: "completion",
  summary: "Print a script that completes commands, options and their values in a shell",
  description: "",
  positionals: {
    shell: argument(choice(shells), { name: "SHELL", summary: "The shell", required: true }),
  },
  options: {},
  examples: [{ words: "completion bash", summary: "For bash: source this output from ~/.bashrc" }],
  run: async ({ shell }, context) => {
    context.output.result({ text: completionScript(context.programName, shell), data: {} });
  },
});

/** The hidden first word that the scripts pass to the program; completion.ts answers it. */
export const completeWord = "__complete";

/**
 * Returns the script that completes this program's command lines in a shell. The script passes the words up to the cursor to the program and offers
 * its answer. The first line of the answer is `words`, `files` or `directories`. Each line after `words` is a candidate, optionally followed by a tab
 * and a description. If the word at the cursor is `--flag=value`, the candidates are values, and the script handles the `--flag=` part.
 * The shells source these files, which releases contain, so the program's name stands in them for PROGRAM and NAME. completion.bash also works in bash
 * 3.2 (macOS), so it uses no associative arrays, `mapfile`, `compopt` or package of helper functions.
 */
export function completionScript(programName: string, shell: Shell): string {
  return scripts[shell].replaceAll("PROGRAM", programName).replaceAll("NAME", programName.replaceAll(/\W/g, "_"));
}

const scripts: Readonly<Record<Shell, string>> = { bash, zsh, fish };
