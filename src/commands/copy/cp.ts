import type { BackendKind } from "../../backend/contract.ts";
import { defineCommand } from "../../cli/command.ts";
import { listArgument } from "../../cli/options/option.ts";
import { anyText } from "../../cli/options/value-types.ts";
import { clusterOptions } from "../options.ts";

export const cpCommand = (kind: BackendKind) =>
  defineCommand({
    name: "cp",
    summary: "Copy files to nodes, or from them",
    description:
      "Copy files and folders as root: `cp SOURCE... NODE:PATH` to nodes, and `cp NODE:PATH... LOCAL` from them. NODE is what `run --node` accepts, groups too, and PATH is absolute. A target that ends with `/` is a folder, which is created if it is missing, and in which the copies keep their names; otherwise it is the path of the only copy.\n\nOn nodes, existing files are replaced, and the other files of existing folders stay. Links are followed. What comes back follows the rules of `run --fetch`; from several nodes, or for a group, each file goes into a folder of its node's name. A local path with a colon needs a slash before it: `./a:b`.",
    positionals: {
      paths: listArgument(
        { ...anyText, completes: "file" },
        {
          name: "PATH",
          summary: "The sources, then the target; all sources are here, or all on nodes",
        },
      ),
    },
    options: clusterOptions(kind, {}),
    examples: [
      { words: "cp ./app.conf agents:/etc/app.conf", summary: "Copy a file to all agents" },
      { words: "cp *.deb master_0:/tmp/", summary: "Copy many files into a folder of a node" },
      { words: "cp all:/var/log/app.log logs/", summary: "Fetch a log of each node" },
    ],
    run: async ({ paths, ...input }, context) => {
      const { executeCopy } = await import("./execute-copy.ts");
      await executeCopy(kind, { paths, ...input }, context);
    },
  });
