import { defineCommand } from "../cli/command.ts";
import { option } from "../cli/options/option.ts";
import { directoryPath } from "../cli/options/value-types.ts";
import type { BackendKind } from "../backend/contract.ts";
import { clusterOptions } from "./options.ts";

export const logsCommand = (kind: BackendKind) =>
  defineCommand({
    name: "logs",
    summary: "Collect the logs of all nodes",
    description:
      "Save the installer, platform and first-boot logs of every node that answers, and the console output of every machine. Each log is a separate file. Print the folder that contains the files. The command works at any time, even while the installation runs or after it has failed.",
    options: clusterOptions(kind, {
      outputDir: option(directoryPath, {
        flag: "--output-dir",
        summary: "Folder for the logs; created if it does not exist",
        defaultText: "a new folder in the cluster's state folder",
      }),
    }),
    examples: [{ words: "logs --output-dir ./logs", summary: "Collect the logs for a bug report" }],
    run: async (input, context) => {
      const { findCluster } = await import("../cluster/find-cluster.ts");
      const { saveLogs } = await import("../cluster/logs.ts");
      const backend = await kind.open(input, context, context.signal);
      const cluster = await findCluster(backend, input.clusterId, context.signal);
      const saved = await saveLogs(
        backend,
        { cluster, folder: input.outputDir },
        context,
        context.signal,
      );
      context.output.result({
        text: saved.folder,
        data: { folder: saved.folder, files: saved.files },
      });
    },
  });
