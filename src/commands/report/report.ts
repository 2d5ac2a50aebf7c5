import type { BackendKind } from "../../backend/contract.ts";
import { defineCommand } from "../../cli/command.ts";
import { argument } from "../../cli/options/option.ts";
import { value, verbose } from "../../cli/options/value-types.ts";
import { scopeOptions } from "../backend-options.ts";
import { clusterId, junitFrom, laterFile } from "../options.ts";

export const reportCommand = (kind: BackendKind) =>
  defineCommand({
    name: "report",
    summary: "Write what happened to a cluster into one HTML file",
    description:
      "Write one HTML file that shows what happened on which node and when: steps, power changes, faults, commands, what the nodes' logs say went wrong, and the logs of all nodes, merged by their corrected times. The file needs no network, and no script to be read. It has at most 5 MB, and says what it leaves out. If the cluster is gone, the report shows what its folder on this computer holds.",
    positionals: {
      file: argument(value(laterFile, "file"), {
        name: "FILE",
        summary: "The HTML file; replaced if it exists",
        required: true,
      }),
    },
    options: {
      clusterId,
      junitFrom,
      ...scopeOptions(kind),
      verbose,
    },
    check: ({ file, junitFrom: junit = [] }, problems) => {
      if (file !== undefined && junit.includes(file))
        problems.add("--junit-from: FILE names the same file");
    },
    examples: [
      { words: "report report.html", summary: "Look at what happened" },
      {
        words: "report --junit-from results.xml report.html",
        summary: "Show the test cases beside it",
      },
    ],
    run: async ({ file, junitFrom: junit, ...input }, context) => {
      const { writeClusterReport } = await import("./write-cluster-report.ts");
      const backend = await kind.open(context, input);
      const cluster = await backend.find(input.clusterId, context.signal);
      const given = { clusterId: input.clusterId, file, cluster, junit };
      await writeClusterReport(backend, given, context, context.signal);
      context.output.result({ text: file });
    },
  });
