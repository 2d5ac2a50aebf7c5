import { defineCommand } from "../../cli/command.ts";
import { argument, option } from "../../cli/options/option.ts";
import { count } from "../../cli/options/value-types.ts";
import { mostNodes } from "../../cluster/create/choose-counts.ts";
import type { BackendKind } from "../../backend/contract.ts";
import { artifactSha256, workspaceDir } from "../create/create-options.ts";
import { platformType } from "../create/create.ts";
import { clusterOptions, timeout } from "../options.ts";

const upgradeOptions = {
  parallel: option(count(1, mostNodes), {
    flag: "--parallel",
    summary: "Number of agents to upgrade at once; masters are always upgraded one by one",
    default: 1,
    defaultText: "1",
  }),
  artifactSha256,
  workspaceDir,
  timeout: timeout("Time limit for the upgrade"),
};

export const upgradeCommand = (kind: BackendKind) =>
  defineCommand({
    name: "upgrade",
    summary: "Upgrade the platform of a running cluster",
    description:
      "Upgrade the nodes to another version of the platform: masters one after the other, then agents, then public agents. After each node, its own check must pass. At the first failure, stop, and print which nodes have which version; run the same command again to continue. The configuration stays as it is. A platform of your own needs a program `upgrade` in its folder. Releases of the layout `cluster` cannot upgrade a running cluster.",
    positionals: {
      artifact: argument(platformType, {
        name: "PLATFORM",
        summary:
          "The new version: a release artifact, as a path or as an https://, http:// or file:// URL; or the folder of a platform of your own",
        required: true,
      }),
    },
    options: clusterOptions(kind, upgradeOptions),
    examples: [
      {
        words: "upgrade ./etcd",
        summary: "Upgrade the cluster `default` to the version in a folder",
      },
      {
        words: "upgrade -c nightly --parallel 5 ./installer.sh",
        summary: "Upgrade five agents at a time",
      },
    ],
    run: async (input, context) => {
      const { executeUpgrade } = await import("./execute-upgrade.ts");
      await executeUpgrade(kind, input, context);
    },
  });
