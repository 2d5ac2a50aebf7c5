import { nodeReference } from "../../model/cluster-record.ts";
import { numbered } from "../../system/amounts.ts";
import type { Progress } from "../../system/runtime.ts";
import type { NodeAnswer } from "./ask-node.ts";
import type { Wait } from "./masters-checker.ts";

const mostSubjects = 3;
/** In larger clusters, one line stands for all nodes that wait for the same thing. */
const mostNodesOneByOne = 8;
const mostReasons = 8;

/** Reports what is being waited for, once per change: a summary in one line, and each node's own change as a detail. */
export function createWaitReporter(
  progress: Progress,
): (waits: readonly Wait[], answers: readonly NodeAnswer[]) => void {
  const reported = new Map<string, string>();
  return (waits, answers) => {
    const reasons = new Map(waits.map(({ subject, reason }) => [subject, reason]));
    for (const { node } of answers) {
      const subject = nodeReference(node);
      const reason = reasons.get(subject) ?? "ready";
      if (reported.get(subject) === reason) continue;
      reported.set(subject, reason);
      progress.detail(1, `${subject}: ${reason}`);
    }
    const text =
      waits.length === 0 ? "all checks passed; confirming" : waitsText(waits, answers.length);
    if (reported.get("") === text) return;
    reported.set("", text);
    progress.waiting(text);
  };
}

/** A line for each node, such as `agent_0: the installer is running`, or for each reason: `all 40 nodes: …`. */
export function waitsText(waits: readonly Wait[], nodeCount: number): string {
  const [first] = waits;
  if (first !== undefined && waits.length === 1) return `${first.subject}: ${first.reason}`;
  const groups =
    waits.length <= mostNodesOneByOne
      ? waits.map((wait) => [wait])
      : [...Map.groupBy(waits, ({ reason }) => reason).values()];
  const lines = groups.map((group) => `${subjectsText(group, nodeCount)}: ${group[0]?.reason}`);
  const rest = lines.length - mostReasons;
  const more = rest > 0 ? [`and ${numbered(rest, "other reason")}`] : [];
  const shown = [...lines.slice(0, mostReasons), ...more].map((line) => `  ${line}`);
  return [
    `waiting for ${numbered(new Set(waits.map(({ subject }) => subject)).size, "node")}:`,
    ...shown,
  ].join("\n");
}

function subjectsText(group: readonly Wait[], nodeCount: number): string {
  if (group.length === nodeCount && nodeCount > 1) return `all ${nodeCount} nodes`;
  const rest = group.length - mostSubjects;
  const named = group.slice(0, mostSubjects).map((wait) => wait.subject);
  return named.join(", ") + (rest > 0 ? ` and ${rest} more` : "");
}
