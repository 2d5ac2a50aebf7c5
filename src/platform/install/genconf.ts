import { dirname } from "node:path/posix";
import { ClusterError } from "../../errors.ts";
import { optionName } from "../../references.ts";
import type { UploadSource } from "../../ssh/connection/connection.ts";
import { shellText } from "../../ssh/shell-text.ts";
import { type WorkPaths, installWork } from "../install-paths.ts";
import type { Layout } from "../layouts/layout.ts";
import { layoutByInstallScript, layouts } from "../layouts/find-layout.ts";
import genconfFile from "./genconf.sh" with { type: "text" };
import { outsideLines } from "../../system/printable.ts";
import { type NodeConnection, type Phase, makeFolders } from "./phase.ts";

export interface GenconfFile {
  /** Relative to `genconf/`, with `/` as separator. */
  readonly path: string;
  readonly source: UploadSource;
  readonly mode: number;
}

const limitMs = 30 * 60_000;

/**
 * Generates the nodes' installer with the artifact. Resolves with the layout, which the install
 * script's name shows.
 */
export const generate = (files: readonly GenconfFile[]): Phase<Layout> => ({
  title: "Configure",
  run: async ({ connection, reference, step }, signal) => {
    await makeFolders(
      { connection, reference },
      {
        name: "e2e-genconf-folders",
        errorId: "remote-command-failed",
        paths: [
          installWork.genconf,
          ...files.map((file) => dirname(`${installWork.genconf}/${file.path}`)),
        ],
        what: "the installer's folder",
        values: { OLD: installWork.genconf },
      },
      signal,
    );
    // Most are small. One after the other, they share a session.
    for (const { path, source, mode } of files) {
      const target = { path: `${installWork.genconf}/${path}`, mode, sudo: true };
      await connection.upload(source, target, signal);
    }
    step.update("generating the installer");
    return generateInstaller({ connection, reference }, signal);
  },
});

const diskFull = 91;
const leastFreeKilobytes = 1024;
const mostLogBytes = 64_000;

/** One run of the artifact that reads `genconf/`. */
interface GenconfRun {
  readonly paths: WorkPaths;
  /** The artifact's words, without spaces or other characters that shells know. */
  readonly words: readonly [option: string, value?: string];
  /** Names of files in `genconf/serve`. The script prints those that exist. */
  readonly names: readonly string[];
  /** The script also prints the rest of the last line of output that begins with this; empty: no such line. */
  readonly linePrefix: string;
  /** The hint for the case that the artifact refuses the configuration. */
  readonly hint: string;
}

export const genconfScript = ({ paths, words, linePrefix }: GenconfRun): string =>
  shellText(genconfFile, {
    FOLDER: paths.folder,
    COMMAND: ["artifact.sh", ...words].join(" "),
    LINE_PREFIX: linePrefix,
    DISK_FULL: diskFull,
    LEAST_KILOBYTES: leastFreeKilobytes,
    MOST_BYTES: mostLogBytes,
  });

/**
 * Runs the artifact on `genconf/`. Resolves with the names and the rest of the line, one a line.
 * Throws `configuration-refused`, `install-failed`.
 */
export async function runGenconf(
  { connection, reference }: NodeConnection,
  run: GenconfRun,
  signal: AbortSignal,
): Promise<string> {
  const result = await connection.run(
    {
      argv: ["sh", "-c", genconfScript(run), "e2e-genconf", ...run.names],
      sudo: true,
      limitMs,
      task: `the artifact's ${run.words[0]}`,
    },
    signal,
  );
  if (result.status === diskFull) throw diskIsFull(reference, run.words[0], result.stdout);
  if (result.status !== 0) throw configurationRefused(run, result.stdout, result.status);
  return result.stdout.trim();
}

export const plainGenconf: GenconfRun = {
  paths: installWork,
  words: ["--genconf"],
  names: layouts.map((layout) => layout.installScript),
  linePrefix: "",
  hint: `Change ${optionName("extraConfig")} or ${optionName("genconfDir")} accordingly.`,
};

async function generateInstaller(node: NodeConnection, signal: AbortSignal): Promise<Layout> {
  const { names } = plainGenconf;
  const layout = layoutByInstallScript(await runGenconf(node, plainGenconf, signal));
  if (layout !== undefined) return layout;
  throw new ClusterError(
    "artifact-invalid",
    `The artifact's --genconf created none of ${names.join(", ")} in genconf/serve.`,
    {
      hint: "Make sure that it is a complete release artifact of a supported family. Its genconf.log is in the nodes' logs.",
    },
  );
}

const diskIsFull = (reference: string, option: string, output: string): ClusterError =>
  new ClusterError(
    "install-failed",
    `${reference}: the disk is full, so the artifact's ${option} failed.`,
    {
      hint: "Choose an image or machines with a larger disk, or free some space there.",
      facts: { node: reference, output: outsideLines(output, 40) },
    },
  );

/** The message quotes the artifact's `key: message` lines. */
function configurationRefused({ hint }: GenconfRun, output: string, status: number): ClusterError {
  const lines = outsideLines(output, 40);
  const shown =
    lines.length === 0 ? [`(it exited with status ${status} and printed nothing)`] : lines;
  return new ClusterError(
    "configuration-refused",
    ["The artifact refused the cluster configuration:", ...shown.map((line) => `  ${line}`)].join(
      "\n",
    ),
    {
      hint,
      facts: { status, output: lines },
    },
  );
}
