import { nodeReference } from "../../model/cluster-record.ts";
import type { Progress } from "../../system/runtime.ts";
import type { NodeAnswer } from "./ask-nodes.ts";
import type { Wait } from "./masters-checker.ts";

const mostSubjects = 3;
const mostReasons = 4;

/** Reports what is being waited for, once per change: a summary in one line, and each node's own change as a detail. */
export function createWaitReporter(
  progress: Progress,
): (waits: readonly Wait[], answers: readonly NodeAnswer[]) => void {
  const said = new Map<string, string>();
  return (waits, answers) => {
    const reasons = new Map(waits.map(({ subject, reason }) => [subject, reason]));
    for (const { node } of answers) {
      const subject = nodeReference(node);
      const reason = reasons.get(subject) ?? "ready";
      if (said.get(subject) === reason) continue;
      said.set(subject, reason);
      progress.detail(1, `${subject}: ${reason}`);
    }
    const text = waits.length === 0 ? "all checks passed; confirming" : waitsText(waits, answers.length);
    if (said.get("") === text) return;
    said.set("", text);
    progress.waiting(text);
  };
}

/** `all 4 nodes: the installer is running`, `agent_0, agent_1: …; master_0: …` */
export function waitsText(waits: readonly Wait[], nodeCount: number): string {
  const subjects = Map.groupBy(waits, (wait) => wait.reason);
  const parts = [...subjects].map(([reason, group]) => `${subjectsText(group, nodeCount)}: ${reason}`);
  const rest = parts.length - mostReasons;
  return [...parts.slice(0, mostReasons), ...(rest > 0 ? [`and ${rest} other reasons`] : [])].join("; ");
}

function subjectsText(group: readonly Wait[], nodeCount: number): string {
  if (group.length === nodeCount && nodeCount > 1) return `all ${nodeCount} nodes`;
  const rest = group.length - mostSubjects;
  const named = group.slice(0, mostSubjects).map((wait) => wait.subject);
  return named.join(", ") + (rest > 0 ? ` and ${rest} more` : "");
}
