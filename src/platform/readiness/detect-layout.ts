import { ClusterError } from "../../errors.ts";
import type { Connection } from "../../ssh/connection.ts";
import { quote } from "../../ssh/quote.ts";
import { installPaths } from "../install-paths.ts";
import type { Layout } from "../layout.ts";
import { reasonOf } from "../phases/remote-script.ts";
import { layouts } from "../layouts/find-layout.ts";

/** Shell lines that set `layout` to the name of the node's layout, or to nothing before an installation was begun. */
export const layoutLines = `layout=$(cat ${installPaths.layout} 2>/dev/null || :)
[ -n "$layout" ] || {
${layouts
  .flatMap((layout) => [layout.versionFile, layout.installedMarker].map((file) => ({ name: layout.name, file })))
  .map(({ name, file }) => `  [ -n "$layout" ] || [ ! -e ${quote([file])} ] || layout=${name}`)
  .join("\n")}
}
`;

/** Which layout is installed, or being installed, on a node; `undefined` where none is. */
export async function detectLayout(
  connection: Connection,
  reference: string,
  signal: AbortSignal,
): Promise<Layout | undefined> {
  const script = `${layoutLines}printf '%s' "$layout"\n`;
  const result = await connection.run(
    {
      argv: ["sh", "-s", "--", "e2e-layout"],
      sudo: true,
      stdin: script,
      limitMs: 30_000,
      task: "looking what is installed",
    },
    signal,
  );
  if (result.status !== 0) {
    throw new ClusterError(
      "remote-command-failed",
      `${reference} could not be asked what is installed on it: ${reasonOf(result)}.`,
      {
        hint: "Look at that node: the run command with --no-test-env gets a shell on it.",
        facts: { node: reference, status: result.status, output: result.stderr.trim().slice(-500) },
      },
    );
  }
  return layouts.find((layout) => layout.name === result.stdout.trim());
}
