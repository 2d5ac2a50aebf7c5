import { ClusterError } from "../errors.ts";
import { commandLimitMs } from "../ssh/connection/connection.ts";
import { outsideLines } from "../system/printable.ts";
import { type NodeConnection, reasonOf } from "./install/phase.ts";

/** A shell script for one node, as root, and how to read what it prints. */
export interface Question<Answer> {
  /** Appears in the node's process list. */
  readonly name: `e2e-${string}`;
  readonly script: string;
  /** Arguments, which the node's process list shows. */
  readonly words?: readonly string[];
  /** Absent: the usual limit. */
  readonly limitMs?: number;
  /** Continues "cannot …". */
  readonly task: string;
  /** Reads outside text. */
  readonly parse: (stdout: string) => Answer;
}

/**
 * Asks a node in one round trip. Throws `remote-command-failed` with the script's own reason, and
 * as connections do.
 */
export async function ask<Answer>(
  { connection, reference }: NodeConnection,
  { name, script, words = [], limitMs = commandLimitMs, task, parse }: Question<Answer>,
  signal: AbortSignal,
): Promise<Answer> {
  const result = await connection.run(
    {
      argv: ["sh", "-s", "--", name, ...words],
      sudo: true,
      stdin: script,
      limitMs,
      task: `trying to ${task}`,
    },
    signal,
  );
  if (result.status === 0) return parse(result.stdout);
  const output = outsideLines(result.stderr || result.stdout, 5);
  throw new ClusterError(
    "remote-command-failed",
    `${reference}: cannot ${task}: ${reasonOf(result)}.`,
    { facts: { node: reference, status: result.status, output } },
  );
}
