import { ClusterError } from "../errors.ts";
import { optionName } from "../references.ts";
import { parseIpv4 } from "../model/parse-values.ts";
import { commandLimitMs, type Connection } from "../ssh/connection/connection.ts";
import { outsideLines, plainLines } from "../system/printable.ts";
import { reasonOf } from "./install/phase.ts";
import { shellText } from "../ssh/shell-text.ts";
import resolversFile from "./resolvers.sh" with { type: "text" };

export const resolversScript = shellText(resolversFile);

export async function readResolvers(
  connection: Connection,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const result = await connection.run(
    {
      argv: ["sh", "-c", resolversScript, "e2e-resolvers"],
      // As root it shares a session with the other steps.
      sudo: true,
      limitMs: commandLimitMs,
      task: "reading its name servers",
    },
    signal,
  );
  if (result.status !== 0) {
    throw new ClusterError(
      "remote-command-failed",
      `Cannot read the first master's /etc/resolv.conf: ${reasonOf(result)}.`,
      {
        hint: `Its name servers belong in the configuration: set resolvers in ${optionName("extraConfig")}, or use another image.`,
        facts: { status: result.status, output: outsideLines(result.stderr, 5) },
      },
    );
  }
  return parseResolvers(result.stdout);
}

/**
 * Parses the node's output, one address a line. The addresses end up in the configuration, so
 * anything else is skipped.
 */
export function parseResolvers(stdout: string): readonly string[] {
  const addresses = plainLines(stdout, 100).map(parseIpv4);
  return [...new Set(addresses.filter((address) => address !== undefined))];
}
