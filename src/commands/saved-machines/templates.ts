import type { LocalKind } from "../../backend/contract.ts";
import { defineCommand } from "../../cli/command.ts";
import { argument } from "../../cli/options/option.ts";
import { choice, outputFormat, text, verbose } from "../../cli/options/value-types.ts";
import { scopeOptions } from "../backend-options.ts";
import type { JsonResults } from "../json-results.ts";

export const templatesCommand = (kind: LocalKind) =>
  defineCommand({
    name: "templates",
    summary: "List and remove the templates of nodes",
    description: `${kind.local.templates ?? ""} \`list\` shows them with the disk space that each uses. \`remove\` removes one, or all that no cluster uses.`,
    positionals: {
      action: argument(choice(["list", "remove"]), {
        name: "ACTION",
        summary: "What to do: list or remove",
        required: true,
      }),
      name: argument(text, {
        name: "NAME",
        summary: "The template to remove; default: all unused ones",
      }),
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
      const { output, clock, columns, progress, signal } = context;
      const [{ table }, { momentText }] = await Promise.all([
        import("../../cli/layout.ts"),
        import("../../system/amounts.ts"),
      ]);
      const { templates } = (await kind.open(context, input)).local;
      if (templates === undefined)
        throw new TypeError("Only backends with templates have this command");
      if (input.action === "remove") {
        const removed = await templates.remove(input.name, signal);
        if (removed.length === 0) progress.note("There are no unused templates.");
        return output.result({
          text: removed.join("\n"),
          data: { removed } satisfies JsonResults["templates"],
        });
      }
      const all = await templates.list(signal);
      if (all.length === 0) progress.note("There are no templates.");
      const rows = all.map(({ name, createdAt, sizeBytes, clusters, machine, problem }) => [
        name,
        createdAt === undefined ? "–" : momentText(createdAt, clock.now()),
        `${Math.ceil(sizeBytes / 1e6)} MB`,
        clusters.join(", ") || "–",
        machine === undefined
          ? "damaged"
          : `${machine}${problem === undefined ? "" : `; boots instead: ${problem}`}`,
      ]);
      const head = ["NAME", "CREATED", "SIZE", "USED BY", "MACHINE"];
      const shown = all.length === 0 ? "" : table([head, ...rows], columns);
      output.result({ text: shown, data: { templates: all } satisfies JsonResults["templates"] });
    },
  });
