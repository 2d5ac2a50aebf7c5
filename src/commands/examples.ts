import { defineCommand } from "../cli/command.ts";
import { argument } from "../cli/options/option.ts";
import { choice, directoryPath, outputFormat, verbose } from "../cli/options/value-types.ts";
import { exampleNames } from "../platform/examples/example-names.ts";
import type { JsonResults } from "./json-results.ts";

export const examplesCommand = defineCommand({
  name: "examples",
  summary: "List example platforms, or write one to a folder",
  description:
    "List the example platforms that this program contains. `bare` installs nothing, on every distribution; the others need nodes with Debian 12 or 13. With NAME and DIR, write one to a folder, to start from.",
  positionals: {
    name: argument(choice(exampleNames), { name: "NAME", summary: "The example" }),
    folder: argument(directoryPath, {
      name: "DIR",
      summary: "A new or empty folder",
    }),
  },
  options: { output: outputFormat(["text", "json"]), verbose },
  examples: [
    { words: "examples", summary: "List the examples" },
    { words: "examples etcd ./my-platform", summary: "Write that of `etcd`" },
  ],
  check: ({ name, folder }, problems) => {
    if (name !== undefined && folder === undefined) problems.add("DIR: required with NAME");
  },
  run: async ({ name, folder }, { output, columns }) => {
    const { listExamples, writeExample } = await import("../platform/examples/examples.ts");
    if (name !== undefined && folder !== undefined) {
      await writeExample(name, folder);
      return output.result({
        text: folder,
        data: { name, folder } satisfies JsonResults["examples"],
      });
    }
    const { table } = await import("../cli/layout.ts");
    const { rows, examples } = await listExamples();
    output.result({
      text: table(rows, columns),
      data: { examples } satisfies JsonResults["examples"],
    });
  },
});
