import { randomBytes } from "node:crypto";
import { ClusterError } from "../errors.ts";
import { outsideReason } from "../system/printable.ts";
import { waits } from "../system/waits.ts";
import type { Connection } from "./connection/connection.ts";
import reseedFile from "./reseed.sh" with { type: "text" };
import { shellText } from "./shell-text.ts";

/**
 * The script that gives a machine other random numbers than every other machine that continues from
 * the same memory.
 */
export const reseedScript = shellText(reseedFile);

/** A line for its input. */
export const freshEntropy = (): string => randomBytes(64).toString("base64");

/**
 * Comes before anything else that is done on a node that continues from saved memory. Throws
 * `remote-command-failed` if nothing proves its effect.
 */
export async function reseed(
  connection: Connection,
  node: string,
  signal: AbortSignal,
): Promise<void> {
  const argv = ["sh", "-c", reseedScript];
  const stdin = `${freshEntropy()}\n`;
  const { limitMs } = waits.continuedLogin;
  const request = { argv, stdin, sudo: true, limitMs, task: "renewing its random numbers" };
  const { status, stderr } = await connection.run(request, signal);
  if (status === 0) return;
  const why = outsideReason(stderr) || `the script exited with ${status}`;
  throw new ClusterError(
    "remote-command-failed",
    `${node} continues, but it is not safe to use: ${why}.`,
    {
      hint: "Install perl or python3 on the nodes, and save them again.",
      facts: { node, status },
    },
  );
}
