import { defineCommand } from "../cli/command.ts";
import { argument } from "../cli/options/option.ts";
import { choice, directoryPath, outputFormat, verbose } from "../cli/options/value-types.ts";
import { ClusterError, messageOf } from "../errors.ts";
import { exampleNames } from "../platform/examples/example-names.ts";
import type { ExampleFile } from "../platform/examples/examples.ts";
import type { PlatformFacts } from "../platform/folder/platform-file.ts";

export const examplesCommand = defineCommand({
  name: "examples",
  summary: "List example platforms, or write one to a folder",
  description:
    "List the platforms that this program contains, with the nodes that a cluster of each has by default. They are installed from the packages of Debian 12 or 13. With NAME and DIR, write the folder of one of them as a start for a platform of your own: `pack` and `create` accept such folders.",
  positionals: {
    name: argument(choice(exampleNames), { name: "NAME", summary: "The example to write" }),
    folder: argument(directoryPath, {
      name: "DIR",
      summary: "The folder to write it to, which must be new or empty",
    }),
  },
  options: { output: outputFormat(["text", "json"]), verbose },
  examples: [
    { words: "examples", summary: "List the examples" },
    { words: "examples etcd ./my-platform", summary: "Write the folder of the example `etcd`" },
  ],
  check: ({ name, folder }, problems) => {
    if (name !== undefined && folder === undefined) problems.add("DIR: required with NAME");
  },
  run: async ({ name, folder }, { output }) => {
    const { examples } = await import("../platform/examples/examples.ts");
    if (name === undefined || folder === undefined) {
      const listed = (await Promise.all(exampleNames.map(async (each) => factsOf(each, examples[each])))).map(listing);
      const { tableText } = await import("./cluster-view.ts");
      const rows = listed.map(({ name: each, version, nodes, description }) => [
        each,
        version,
        nodesText(nodes),
        description,
      ]);
      output.result({
        text: tableText([["NAME", "VERSION", "NODES", "DESCRIPTION"], ...rows]),
        data: { examples: listed },
      });
      return;
    }
    await writeFiles(folder, examples[name]);
    output.result({ text: folder, data: { name, folder } });
  },
});

async function factsOf(name: string, files: readonly ExampleFile[]): Promise<PlatformFacts> {
  const { platformFolderOf } = await import("../platform/folder/read-folder.ts");
  const platform = await platformFolderOf(name, files);
  if (platform.problems !== undefined) throw new TypeError(platform.problems.join("; "));
  return platform.value.facts;
}

interface Listing {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly nodes: { readonly masters: number; readonly agents: number; readonly publicAgents: number };
}

const listing = ({ name, version, description = "", nodes }: PlatformFacts): Listing => ({
  name,
  version,
  description,
  nodes: {
    masters: nodes.master.default ?? 1,
    agents: nodes.agent.default ?? 1,
    publicAgents: nodes.public_agent.default ?? 1,
  },
});

function nodesText({ masters, agents, publicAgents }: Listing["nodes"]): string {
  const counted = [
    [masters, "master"],
    [agents, "agent"],
    [publicAgents, "public agent"],
  ] as const;
  return counted
    .filter(([count]) => count > 0)
    .map(([count, noun]) => `${count} ${noun}${count === 1 ? "" : "s"}`)
    .join(", ");
}

async function writeFiles(folder: string, files: readonly ExampleFile[]): Promise<void> {
  const [{ chmod, mkdir, readdir, writeFile }, { dirname, join }] = await Promise.all([
    import("node:fs/promises"),
    import("node:path"),
  ]);
  try {
    await mkdir(folder, { recursive: true });
    if ((await readdir(folder)).length > 0) throw notWritten(folder, "it is not empty", undefined);
    for (const { path, mode, text } of files) {
      const file = join(folder, path);
      await mkdir(dirname(file), { recursive: true });
      await writeFile(file, text, { flag: "wx" });
      if (mode === 0o755) await chmod(file, mode);
    }
  } catch (error) {
    throw error instanceof ClusterError ? error : notWritten(folder, messageOf(error), error);
  }
}

const notWritten = (folder: string, reason: string, cause: unknown): ClusterError =>
  new ClusterError("bad-usage", `Cannot write the example to ${folder}: ${reason}.`, {
    hint: "Pass a folder that does not exist yet, or an empty one that you may write to.",
    facts: { folder },
    cause,
  });
