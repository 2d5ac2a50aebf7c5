import { defineCommand, type Context } from "../../cli/command.ts";
import { argument } from "../../cli/options/option.ts";
import { outputFormat, value, verbose } from "../../cli/options/value-types.ts";
import { ClusterError } from "../../errors.ts";
import { commandName } from "../../references.ts";
import type { BackendKind } from "../../backend/contract.ts";
import type { JsonResults } from "../json-results.ts";

export const importCommand = (kind: BackendKind) =>
  defineCommand({
    name: "import",
    summary: "Use a cluster that another computer has exported",
    description:
      "Read a file that `export` wrote, look for the cluster in the cloud, and log in to its nodes with the keys in the file. If the cluster exists and the host keys match, keep the keys, so that all other commands work here too. If anything is wrong, change nothing. The command needs cloud credentials for the same account; the region is in the file.",
    positionals: {
      file: argument(
        value((given) => given, "file"),
        { name: "FILE", summary: "The file, or - for stdin", required: true },
      ),
    },
    options: { output: outputFormat(["text", "json"]), verbose },
    examples: [
      { words: "import nightly.json", summary: "Use the cluster in `nightly.json`" },
      { words: "import -", summary: "Read the file from stdin, for example from age" },
    ],
    run: async ({ file }, context) => {
      const { mostHandOverBytes, parseHandOver } = await import("../../cluster/export-cluster.ts");
      const { importCluster } = await import("../../cluster/import-cluster.ts");
      const handOver = await parseHandOver(
        await readHandOver(file, mostHandOverBytes, context),
        file === "-" ? "stdin" : file,
      );
      const { region } = handOver;
      const backend = await kind.open(context, { region });
      const { id } = await importCluster(context, backend, handOver);
      context.output.result({
        text: id,
        data: { cluster: id, region } satisfies JsonResults["import"],
      });
    },
  });

async function readHandOver(given: string, mostBytes: number, context: Context): Promise<string> {
  const { cwd, signal, isTerminal, progress } = context;
  const [path, { readStdinText, readText, unreadableReason }] = await Promise.all([
    import("node:path"),
    import("../../system/files/read-text.ts"),
  ]);
  if (given === "-" && isTerminal.stdin)
    progress.note("Paste the exported text, then press Enter and Ctrl-D.");
  try {
    return given === "-"
      ? await readStdinText(mostBytes, signal)
      : await readText(path.resolve(cwd, given), mostBytes, signal);
  } catch (error) {
    signal.throwIfAborted();
    throw new ClusterError(
      "bad-usage",
      `Cannot read ${given === "-" ? "stdin" : given}: ${unreadableReason(error)}.`,
      {
        hint: `Pass the file that ${commandName("export")} wrote.`,
        cause: error,
      },
    );
  }
}
