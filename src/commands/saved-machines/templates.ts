import type { BackendKind } from "../../backend/contract.ts";
import { defineCommand } from "../../cli/command.ts";
import { argument } from "../../cli/options/option.ts";
import { choice, outputFormat, text, verbose } from "../../cli/options/value-types.ts";
import { scopeOptions } from "../backend-options.ts";

export const templatesCommand = (kind: BackendKind) =>
  defineCommand({
    name: "templates",
    summary: "List and remove the templates of nodes",
    description: `${kind.parts.templates ?? ""} \`list\` shows them with the disk space that each uses. \`remove\` removes one, or all that no cluster uses.`,
    positionals: {
      action: argument(choice(["list", "remove"]), {
        name: "ACTION",
        summary: "What to do: list or remove",
        required: true,
      }),
      name: argument(text, { name: "NAME", summary: "The template to remove; default: all unused ones" }),
    },
    options: { ...scopeOptions(kind), output: outputFormat(["text", "json"]), verbose },
    examples: [
      { words: "templates list", summary: "Show all templates" },
      { words: "templates remove", summary: "Remove the templates that no cluster uses" },
    ],
    check: ({ action, name }, problems) => {
      if (action === "list" && name !== undefined) problems.add("NAME: list takes no name");
    },
    run: async (input, context) => {
      const backend = await kind.open(input, context, context.signal);
      const { executeTemplates } = await import("./execute-templates.ts");
      await executeTemplates(backend, input, context);
    },
  });
