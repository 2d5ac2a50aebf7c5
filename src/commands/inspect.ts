import { defineCommand } from "../cli/command.ts";
import { flag } from "../cli/options/option.ts";
import { outputFormat, verbose } from "../cli/options/value-types.ts";
import type { BackendKind } from "../backend/contract.ts";
import { endsByItself, scopeOptions } from "./backend-options.ts";
import type { JsonResults } from "./json-results.ts";
import { clusterId } from "./options.ts";

const inventoryNames = ["ansible", "addresses", "hosts"] as const;

export const inspectCommand = (kind: BackendKind) =>
  defineCommand({
    name: "inspect",
    summary: "Show the details of a cluster",
    description: `Show the nodes with their IP addresses, the path of the SSH key for all nodes${endsByItself(kind) ? ", the web UI's URL and the time left" : ", and the web UI's URL"}. With \`--output ssh-config\`, print an SSH configuration: ssh and scp accept it with \`-F FILE\`, rsync with \`-e "ssh -F FILE"\`. There, each node has three names: \`master_0\`, \`master_0.CLUSTER\` and \`master-0.CLUSTER\`. With \`--output ansible\`, print an inventory with a group for each role; with \`--output addresses\`, an address a line; with \`--output hosts\`, lines for /etc/hosts; with \`--output env\`, the variables of \`run --local\`, for \`eval\`. With \`--output names\`, print the names of the nodes. With \`--versions\`, log in to the nodes, and show which version of the platform each has.`,
    options: {
      clusterId,
      ...scopeOptions(kind),
      versions: flag({
        flag: "--versions",
        summary: "Ask each node which version of the platform it has",
      }),
      output: outputFormat(["text", "json", "ssh-config", "names", ...inventoryNames, "env"]),
      verbose,
    },
    examples: [
      {
        words: "inspect --output ansible > hosts.yaml",
        summary: "Write an inventory for `ansible-playbook -i hosts.yaml`",
      },
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
        { factsJson, inspectFacts, inspectText, versionsOf },
        { environmentLines, inventories },
      ] = await Promise.all([
        import("../cluster/find-cluster.ts"),
        import("../cluster/connections.ts"),
        import("./inspect-view.ts"),
        import("./inventory.ts"),
      ]);
      const backend = await kind.open(context, input);
      const cluster = await findCluster(backend, input.clusterId, context.signal);
      // Completion reads the names.
      if (input.output !== "names") await warnIfCutShort(cluster, context);
      const versions = input.versions ? await versionsOf(cluster, context) : undefined;
      const nowMs = context.clock.now();
      const facts = await inspectFacts(cluster, versions, nowMs);
      const textOf = async (format: string): Promise<string> => {
        if (format === "ssh-config") return sshConfig(cluster);
        const own = { program: context.programPath, scope: backend.scope };
        if (format === "env") return environmentLines(cluster, { ...own, json: factsJson(facts) });
        const inventory = inventoryNames.find((each) => each === format);
        if (inventory !== undefined) return inventories[inventory](cluster);
        return format === "names"
          ? nodeNamesOf(cluster).join("\n")
          : inspectText(facts, context.columns, nowMs);
      };
      const text = await textOf(input.output);
      context.output.result({ text, data: { cluster: facts } satisfies JsonResults["inspect"] });
    },
  });
