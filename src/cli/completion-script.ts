import bash from "./completion.bash" with { type: "text" };
import fish from "./completion.fish" with { type: "text" };
import zsh from "./completion.zsh" with { type: "text" };

/**
 * Returns the script that completes this program's command lines in a shell. The script passes the words up to the cursor to the program and offers
 * its answer. The first line of the answer is `words`, `files` or `directories`. Each line after `words` is a candidate, optionally followed by a tab
 * and a description. If the word at the cursor is `--flag=value`, the candidates are values, and the script handles the `--flag=` part.
 * The shells source these files, which releases contain, so the program's name stands in them for PROGRAM and NAME. completion.bash also works in bash
 * 3.2 (macOS), so it uses no associative arrays, `mapfile`, `compopt` or package of helper functions.
 */
export function completionScript(programName: string, shell: keyof typeof scripts): string {
  return scripts[shell].replaceAll("PROGRAM", programName).replaceAll("NAME", programName.replaceAll(/\W/g, "_"));
}

const scripts = { bash, zsh, fish } as const;
