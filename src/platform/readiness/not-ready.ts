import { numbered } from "../../system/amounts.ts";
import { nodeReference } from "../../model/cluster-record.ts";
import { ClusterError } from "../../errors.ts";
import { optionName } from "../../references.ts";
import { outside } from "../../outside-text.ts";
import { installPaths } from "../install-paths.ts";
import type { NodeAnswer } from "./ask-node.ts";
import type { Wait } from "./masters-checker.ts";

const mostLines = 40;

/** Throws `install-failed`, with the end of the first failed node's log, if the installation has failed on any node. */
export function assertNotFailed(answers: readonly NodeAnswer[]): void {
  const failures = answers.flatMap(({ node, verdict }) =>
    verdict.kind === "failed"
      ? [{ node: nodeReference(node), reason: verdict.reason, log: verdict.log.map(outside) }]
      : [],
  );
  const [first, ...others] = failures;
  if (first === undefined) return;
  const also =
    others.length === 0 ? "" : ` (and on ${others.map((failure) => failure.node).join(", ")})`;
  const tail =
    first.log.length === 0
      ? []
      : ["The last lines of its log:", ...first.log.map((line) => `    ${line}`)];
  throw new ClusterError(
    "install-failed",
    [`The installation failed on ${first.node}${also}: ${first.reason}.`, ...tail].join("\n"),
    { hint: `The whole log is ${installPaths.installLog} on that node.`, facts: { failures } },
  );
}

export function deadlinePassed(
  waits: readonly Wait[],
  answers: readonly NodeAnswer[],
  elapsedMs: number,
): ClusterError {
  const shown = waits.slice(0, mostLines).map(({ subject, reason }) => `  ${subject}: ${reason}`);
  const rest = waits.length - shown.length;
  const lines = [...shown, ...(rest > 0 ? [`  and ${rest} more`] : [])];
  const nodes = numbered(answers.length, "node");
  const head = `The cluster with ${nodes} was not ready after ${Math.round(elapsedMs / 1000)} s.`;
  const text =
    waits.length === 0
      ? ["All checks had passed, but time ran out before they were confirmed."]
      : ["Not ready yet:", ...lines];
  return new ClusterError("deadline-passed", [head, ...text].join("\n"), {
    hint: `Wait again, or allow more time with ${optionName("timeout")}.`,
    facts: { waits, elapsedMs },
  });
}
