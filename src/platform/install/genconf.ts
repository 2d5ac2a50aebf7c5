import { ClusterError } from "../../errors.ts";
import type { Connection, UploadSource } from "../../ssh/connection/connection.ts";
import { shellText } from "../../ssh/shell-text.ts";
import { mapConcurrently } from "../../system/concurrency.ts";
import { installPaths } from "../install-paths.ts";
import type { Layout } from "../layouts/layout.ts";
import { layoutByInstallScript, layouts } from "../layouts/find-layout.ts";
import genconfFile from "./genconf.sh" with { type: "text" };
import makeFoldersFile from "./make-folders.sh" with { type: "text" };
import { outsideLines } from "../../system/printable.ts";
import { type Phase, runRemoteScript } from "./phase.ts";

export interface GenconfFile {
  /** Relative to `genconf/`, with `/` as separator. */
  readonly path: string;
  readonly source: UploadSource;
  readonly mode: number;
}

const limitMs = 30 * 60_000;
const filesAtOnce = 4;

/** Runs the artifact to generate what the nodes install from. Resolves with the layout, which the name of the install script shows. */
export const generate = (files: readonly GenconfFile[]): Phase<Layout> => ({
  title: "Configure",
  run: async ({ connection, reference, step }, signal) => {
    await makeFolders(connection, files, reference, signal);
    await mapConcurrently(
      files,
      filesAtOnce,
      async ({ path, source, mode }) =>
        connection.upload(source, { path: `${installPaths.genconf}/${path}`, mode, sudo: true }, signal),
      signal,
    );
    step.update("generating the installer");
    return runGenconf(connection, reference, signal);
  },
});

async function makeFolders(
  connection: Connection,
  files: readonly GenconfFile[],
  reference: string,
  signal: AbortSignal,
): Promise<void> {
  const folders = files.map((file) => `${installPaths.genconf}/${file.path}`.replace(/\/[^/]*$/, ""));
  await runRemoteScript(
    connection,
    {
      name: "e2e-genconf-folders",
      text: shellText(makeFoldersFile, { OLD: installPaths.genconf }),
      arguments: [...new Set([installPaths.genconf, ...folders])],
      limitMs: 60_000,
      task: "creating the installer's folder",
      failure: `${reference}: cannot create the installer's folder`,
      errorId: "remote-command-failed",
    },
    signal,
  );
}

const diskFull = 91;
const leastFreeKilobytes = 1024;
const mostLogBytes = 64_000;

export const genconfScript = shellText(genconfFile, {
  FOLDER: installPaths.workFolder,
  DISK_FULL: diskFull,
  LEAST_KILOBYTES: leastFreeKilobytes,
  MOST_BYTES: mostLogBytes,
});

async function runGenconf(connection: Connection, reference: string, signal: AbortSignal): Promise<Layout> {
  const names = layouts.map((layout) => layout.installScript);
  const result = await connection.run(
    {
      argv: ["sh", "-c", genconfScript, "e2e-genconf", ...names],
      sudo: true,
      limitMs,
      task: "the artifact's --genconf",
    },
    signal,
  );
  if (result.status === diskFull) throw diskIsFull(reference, result.stdout);
  if (result.status !== 0) throw configurationRefused(result.stdout, result.status);
  const layout = layoutByInstallScript(result.stdout.trim());
  if (layout !== undefined) return layout;
  throw new ClusterError(
    "artifact-invalid",
    `The artifact's --genconf created none of ${names.join(", ")} in genconf/serve.`,
    {
      hint: "Make sure that it is a complete release artifact of a supported family. Its genconf.log is in the nodes' logs.",
    },
  );
}

const diskIsFull = (reference: string, output: string): ClusterError =>
  new ClusterError("install-failed", `${reference}: the disk is full, so the artifact's --genconf failed.`, {
    hint: "Choose an image or machines with a larger disk, or free some space there.",
    facts: { node: reference, output: outsideLines(output, 40) },
  });

/** The message quotes the artifact's `key: message` lines. */
function configurationRefused(output: string, status: number): ClusterError {
  const lines = outsideLines(output, 40);
  const shown = lines.length === 0 ? [`(it exited with status ${status} and printed nothing)`] : lines;
  return new ClusterError(
    "configuration-refused",
    ["The artifact refused the cluster configuration:", ...shown.map((line) => `  ${line}`)].join("\n"),
    {
      hint: "Change `extraConfig` or `genconfDir` accordingly.",
      facts: { status, output: lines },
    },
  );
}
