import { defineCommand } from "../../cli/command.ts";
import { option } from "../../cli/options/option.ts";
import { newFile, text, verbose } from "../../cli/options/value-types.ts";
import type { BackendKind } from "../../backend/contract.ts";
import { scopeOptions } from "../backend-options.ts";
import { clusterId } from "../options.ts";

export const exportCommand = (kind: BackendKind) =>
  defineCommand({
    name: "export",
    summary: "Export a cluster for use on another computer",
    description:
      "Write a file to stdout that `import` reads on the other computer. It contains the private SSH key for the nodes, their host keys, and the region, but no cloud credentials. Anyone who has the file can log in to all nodes as root until the cluster ends. Protect it: redirect stdout to a file that only you can read, pass `--output-file`, or encrypt it with `--recipient`. The command does not write an unencrypted file to a terminal.",
    options: {
      clusterId,
      ...scopeOptions(kind),
      outputFile: option(newFile, {
        flag: "--output-file",
        placeholder: "<file>",
        summary: "File to write, which only you can read; replaces an existing file",
        defaultText: "stdout",
      }),
      recipients: option(text, {
        flag: "--recipient",
        placeholder: "<public_key>",
        summary:
          "Encrypt the file with age, which must be installed, for the owner of this key (age1… or ssh-…)",
        repeatable: true,
      }),
      verbose,
    },
    examples: [
      {
        words: "export -c nightly --output-file nightly.json",
        summary: "Hand over the cluster `nightly`",
      },
      {
        words: "export --recipient age1… > default.age",
        summary: "Encrypt the file for a colleague",
      },
    ],
    check: ({ outputFile, recipients = [] }, problems, { isTerminal }) => {
      if (outputFile !== undefined || recipients.length > 0 || !isTerminal.stdout) return;
      problems.add(
        "stdout is a terminal, which would show a private key: pass --output-file, or redirect stdout",
      );
    },
    run: async (input, context) => {
      const { encrypt, exportCluster, saveExport } =
        await import("../../cluster/export-cluster.ts");
      const { outputFile, recipients } = input;
      const { environment, signal } = context;
      const backend = await kind.open(context, input);
      const plain = await exportCluster(backend, input.clusterId, signal);
      const exported =
        recipients.length === 0 ? plain : await encrypt(plain, recipients, environment, signal);
      if (outputFile === undefined) return context.output.result({ text: exported });
      await saveExport(outputFile, exported);
    },
  });
