import { defineCommand } from "../cli/command.ts";
import { argument, option } from "../cli/options/option.ts";
import { directoryPath, newFile, outputFormat, verbose } from "../cli/options/value-types.ts";
import { outside } from "../outside-text.ts";
import type { JsonResults } from "./json-results.ts";

export const packCommand = defineCommand({
  name: "pack",
  summary: "Pack the folder of a platform into one artifact",
  description:
    "Check a folder with a platform (`platform.yaml`, `install`, `check` and whatever they need), and write it as one file that `create` accepts like any other artifact, also from a URL. Print the file's path on stdout, and its size and SHA-256 checksum on stderr. The same folder always gives the same bytes, whatever the times and owners of its files are. `.git`, `.DS_Store` and empty folders are left out.",
  positionals: {
    folder: argument(directoryPath, { name: "FOLDER", summary: "The folder", required: true }),
  },
  options: {
    outputFile: option(newFile, {
      flag: "--output-file",
      placeholder: "<file>",
      summary: "File to write; replaces an existing file",
      defaultText: "NAME-VERSION.sh in the current folder",
    }),
    output: outputFormat(["text", "json"]),
    verbose,
  },
  examples: [
    {
      words: "pack ./etcd",
      summary: "Write etcd-3.5.sh, if that is the platform's name and version",
    },
    {
      words: "pack ./etcd --output-file /srv/www/etcd.sh",
      summary: "Write the artifact where a web server serves it",
    },
  ],
  run: async (input, context) => {
    const [{ resolve }, { defaultName, notPackable, packFolder }, { readPlatformFolder }] =
      await Promise.all([
        import("node:path"),
        import("../platform/folder/pack.ts"),
        import("../platform/folder/read-folder.ts"),
      ]);
    const { folder } = input;
    const { value: platform, problems } = await readPlatformFolder(folder, context.signal);
    if (problems !== undefined) throw notPackable(problems);
    const { name, version } = platform.facts;
    const file = input.outputFile ?? resolve(context.cwd, defaultName(platform));
    const { sizeBytes, sha256 } = await packFolder({ folder, platform, file }, context.signal);
    context.progress.note(
      `Packed ${name} ${outside(version)}: ${sizeBytes} bytes, SHA-256 ${sha256}.`,
    );
    context.output.result({
      text: file,
      data: { file, name, version, sizeBytes, sha256 } satisfies JsonResults["pack"],
    });
  },
});
