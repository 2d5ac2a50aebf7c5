import { ClusterError } from "../errors.ts";
import { parseIpv4 } from "../model/parse-values.ts";
import type { Connection } from "../ssh/connection/connection.ts";
import { lastLines, reasonOf } from "./install/phase.ts";

/**
 * systemd-resolved puts its own stub (127.0.0.53) into /etc/resolv.conf and lists the real servers in a file of its own. A loopback address of any
 * other program stays: Docker's 127.0.0.11 or a local dnsmasq is what the node actually queries, and every node has its own.
 */
export const resolversScript = `
file=/etc/resolv.conf
upstream=/run/systemd/resolve/resolv.conf
names() { sed -n 's/^[[:space:]]*nameserver[[:space:]][[:space:]]*\\([0-9.]*\\)[[:space:]]*$/\\1/p' "$1"; }
if names "$file" | grep -q '^127[.]0[.]0[.]5[34]$' && [ -n "$(names "$upstream" 2>/dev/null)" ]; then file=$upstream; fi
names "$file"
`;

/** Returns the IPv4 name servers of the first master, in its order; empty if it has none. It never adds servers of our choice. */
export async function readResolvers(connection: Connection, signal: AbortSignal): Promise<readonly string[]> {
  const result = await connection.run(
    { argv: ["sh", "-c", resolversScript, "e2e-resolvers"], limitMs: 30_000, task: "reading its name servers" },
    signal,
  );
  if (result.status !== 0) {
    throw new ClusterError(
      "remote-command-failed",
      `Cannot read the first master's /etc/resolv.conf: ${reasonOf(result)}.`,
      {
        hint: "Its name servers belong in the configuration: set resolvers in `extraConfig`, or use another image.",
        facts: { status: result.status, output: lastLines(result.stderr, 5) },
      },
    );
  }
  return parseResolvers(result.stdout);
}

/** Parses the node's output, one address a line. The addresses end up in the configuration, so anything else is skipped. */
export function parseResolvers(stdout: string): readonly string[] {
  const addresses = lastLines(stdout, 100).map(parseIpv4);
  return [...new Set(addresses.filter((address) => address !== undefined))];
}
