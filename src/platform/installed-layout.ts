import { ClusterError } from "../errors.ts";
import type { Connection } from "../ssh/connection.ts";
import type { Layout } from "./layout.ts";
import { detectLayout } from "./readiness/detect-layout.ts";

/** The layout that is installed on a node, or being installed; `not-installed` where none is. */
export async function installedLayout(connection: Connection, reference: string, signal: AbortSignal): Promise<Layout> {
  const layout = await detectLayout(connection, reference, signal);
  if (layout !== undefined) return layout;
  throw new ClusterError("not-installed", `The cluster software is not installed on ${reference} yet.`, {
    hint: "The wait command tells when it is.",
    facts: { node: reference },
  });
}
