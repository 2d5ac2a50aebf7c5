import { defineCommand } from "../cli/command.ts";
import { option } from "../cli/options/option.ts";
import { outputFormat, verbose } from "../cli/options/shared-options.ts";
import { directoryPath } from "../cli/options/value-types.ts";
import type { Driver } from "./driver.ts";
import { clusterId } from "./options.ts";

export const logsCommand = (driver: Driver) =>
  defineCommand({
    name: "logs",
    summary: "Collects the logs of all nodes",
    description:
      "Saves the logs of installer, platform and first boot of every node that answers, and the machines' console output, one file each, and prints the folder. It works at any time, also while the installation runs or after it failed.",
    positionals: {},
    options: {
      clusterId,
      ...driver.placeOptions,
      outputDir: option(directoryPath, {
        flag: "--output-dir",
        summary: "Folder for the logs; made if it is not there",
        defaultText: "a new one in the cluster's state folder",
      }),
      output: outputFormat(["text", "json"]),
      verbose,
    },
    examples: [{ words: "logs --output-dir ./logs", summary: "Collect the logs for a bug report" }],
    run: async (input, context) => {
      const { findCluster } = await import("../cluster/find-cluster.ts");
      const { saveLogs } = await import("../cluster/logs/save-logs.ts");
      const backend = await driver.open(input, context, context.signal);
      const cluster = await findCluster(backend, input.clusterId, context.signal);
      const saved = await saveLogs(backend, { cluster, folder: input.outputDir }, context, context.signal);
      context.output.result({ text: saved.folder, data: { folder: saved.folder, files: saved.files } });
    },
  });
