import { defineCommand } from "./command.ts";
import { argument } from "./options/option.ts";
import { choice } from "./options/value-types.ts";

const shells = ["bash", "zsh", "fish"] as const;

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
    const { completionScript } = await import("./completion.ts");
    context.output.result({ text: completionScript(context.programName, shell), data: {} });
  },
});

/** The hidden first word that the scripts pass to the program; completion.ts answers it. */
export const completeWord = "__complete";
