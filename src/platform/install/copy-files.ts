import { dirname } from "node:path/posix";
import { mapConcurrently } from "../../system/map-concurrently.ts";
import { shellText } from "../../ssh/shell-text.ts";
import type { FileToCopy } from "../configuration/genconf-folder.ts";
import makeFolders from "./make-folders.sh" with { type: "text" };
import { type Phase, runRemoteScript } from "./phase.ts";

const filesAtOnce = 4;

/** Sends files to the node as root, and creates missing folders. */
export const copyFiles = (copies: readonly FileToCopy[]): Phase => ({
  title: "Copy files",
  run: async ({ connection, reference, step }, signal) => {
    await runRemoteScript(
      connection,
      {
        name: "e2e-copy-folders",
        // Other users must be able to reach the files that their modes let them read.
        text: shellText(makeFolders, { MASK: "022" }),
        arguments: [...new Set(copies.map((copy) => dirname(copy.target)))],
        limitMs: 60_000,
        task: "creating the folders of `copyToMaster`",
        failure: `${reference}: cannot create the folders of \`copyToMaster\``,
        errorId: "install-failed",
      },
      signal,
    );
    const sent: string[] = [];
    await mapConcurrently(
      copies,
      filesAtOnce,
      async ({ source, target, mode }) => {
        await connection.upload({ file: source }, { path: target, mode, sudo: true }, signal);
        sent.push(target);
        step.update(`${sent.length} of ${copies.length}`);
      },
      signal,
    );
  },
});
