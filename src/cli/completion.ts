import type { Program } from "./command.ts";
import { bashCompletion } from "./completion-bash.ts";
import { fishCompletion } from "./completion-fish.ts";
import { completionModel } from "./completion-model.ts";
import { zshCompletion } from "./completion-zsh.ts";

type Shell = "bash" | "zsh" | "fish";

/** The script that teaches a shell this program's commands, options and values, live ones (`completeWith`) included. */
export function completionScript(program: Program, shell: Shell): string {
  const model = completionModel(program);
  switch (shell) {
    case "bash":
      return bashCompletion(model);
    case "zsh":
      return zshCompletion(model);
    case "fish":
      return fishCompletion(model);
  }
}
