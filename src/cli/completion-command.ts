import { defineCommand } from "./command.ts";
import { completionScript, shells } from "./completion-script.ts";
import { argument } from "./options/option.ts";
import { choice } from "./options/value-types.ts";

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
