import { defineCommand } from "../cli/command.ts";
import { flag } from "../cli/options/option.ts";
import { outputFormat, verbose } from "../cli/options/value-types.ts";
import type { BackendKind } from "../backend/contract.ts";
import { endsByItself, scopeOptions } from "./backend-options.ts";
import { clusterId } from "./options.ts";

export const inspectCommand = (kind: BackendKind) =>
  defineCommand({
    name: "inspect",
    summary: "Show the details of a cluster",
    description: `Show the nodes with their IP addresses, the path of the SSH key for all nodes${endsByItself(kind) ? ", the web UI's URL and the time left" : ", and the web UI's URL"}. With \`--output ssh-config\`, print an SSH configuration: ssh and scp accept it with \`-F FILE\`, rsync with \`-e "ssh -F FILE"\`. With \`--output names\`, print the names that \`run --node\` accepts. With \`--versions\`, log in to the nodes, and show which version of the platform each has.`,
    options: {
      clusterId,
      ...scopeOptions(kind),
      versions: flag({
        flag: "--versions",
        summary: "Ask each node which version of the platform it has",
      }),
      output: outputFormat(["text", "json", "ssh-config", "names"]),
      verbose,
    },
    examples: [
      { words: "inspect -c nightly", summary: "Show the nodes of the cluster `nightly`" },
      {
        words: "inspect --output ssh-config > cluster.ssh",
        summary: "Save an SSH configuration for `ssh -F cluster.ssh master_0`",
      },
    ],
    run: async (input, context) => {
      const [
        { findCluster, nodeNamesOf },
        { sshConfig, warnIfCutShort },
        { inspectFacts, inspectText, versionsOf },
      ] = await Promise.all([
        import("../cluster/find-cluster.ts"),
        import("../cluster/connections.ts"),
        import("./inspect-view.ts"),
      ]);
      const backend = await kind.open(input, context, context.signal);
      const cluster = await findCluster(backend, input.clusterId, context.signal);
      // Completion reads the names.
      if (input.output !== "names") await warnIfCutShort(cluster, context);
      const versions = input.versions ? await versionsOf(cluster, context) : undefined;
      const nowMs = context.clock.now();
      const facts = await inspectFacts(cluster, versions, nowMs);
      const textOf = async (format: string): Promise<string> => {
        if (format === "ssh-config") return sshConfig(cluster);
        return format === "names"
          ? nodeNamesOf(cluster).join("\n")
          : inspectText(facts, context.columns, nowMs);
      };
      context.output.result({ text: await textOf(input.output), data: { cluster: facts } });
    },
  });
