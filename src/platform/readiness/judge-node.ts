import { outside } from "../../outside-text.ts";
import { outsideLine } from "../../system/printable.ts";
import type { NodeReport } from "./node-report.ts";
import { parseJson } from "../../system/parse-json.ts";

export type NodeVerdict =
  | { readonly kind: "ready" }
  /** `reason` says, for users, what is being waited for. */
  | { readonly kind: "waiting"; readonly reason: string }
  /** The installation can no longer succeed. */
  | { readonly kind: "failed"; readonly reason: string; readonly log: readonly string[] };

const waiting = (reason: string): NodeVerdict => ({ kind: "waiting", reason });
// The exit status of `timeout` for a command that it ended.
const timedOut = 124;

/** Returns what a node's report means for the wait: the installer's result counts first, then the platform's own check. */
export function judgeNode(report: NodeReport): NodeVerdict {
  const failure = failureOf(report);
  if (failure !== undefined) return { kind: "failed", reason: failure, log: report.log };
  if (report.layout === "") return waiting("not installed yet");
  if (report.status === "running" || (report.status === "" && isAtWork(report.unit)))
    return waiting("the installer is running");
  const busy = Object.entries(report.setup).find(([, state]) => isBusy(state));
  if (report.checkStatus === 0) return { kind: "ready" };
  if (busy !== undefined) return waiting(`${outside(busy[0])} is running`);
  if (report.checkStatus === undefined) return waiting("the platform's own check is not installed yet");
  if (report.checkStatus === timedOut) return waiting("the platform's own check does not finish");
  return waiting(`its check says: ${checkReason(report)}`);
}

function failureOf(report: NodeReport): string | undefined {
  const exit = /^exit (\d+)$/.exec(report.status)?.[1];
  if (exit !== undefined && exit !== "0") return `the install script exited with status ${exit}`;
  if (report.status === "running" && !isAtWork(report.unit)) return "the installer was interrupted";
  const failed = Object.entries(report.setup).find(([, state]) => state === "failed");
  return failed === undefined ? undefined : `the unit ${outside(failed[0])} failed`;
}

const isAtWork = (unit: string): boolean => unit === "active" || unit === "activating";
const isBusy = (state: string): boolean => state === "activating" || state === "reloading";

const longestName = 100;
const longestReason = 200;
const complaint = /^(critical|unknown|warning|error|fail)/i;

/**
 * Returns the first complaint of a check that answers in JSON (`{"checks": {NAME: {"output", "status"}}}`). Otherwise returns the first line that
 * looks like a complaint, or else the last line.
 */
function checkReason({ checkOutput, checkStatus }: NodeReport): string {
  const told = complaintIn(checkOutput);
  if (told !== undefined) return told;
  const lines = checkOutput.split("\n").map((line) => line.trim());
  const line = lines.find((text) => complaint.test(text)) ?? lines.findLast((text) => text !== "");
  return outsideLine(line, longestReason) || `status ${checkStatus}`;
}

function complaintIn(output: string): string | undefined {
  try {
    const body = parseJson(output) as { checks?: Record<string, { output?: string; status?: number }> };
    const [name, check] = Object.entries(body.checks ?? {}).find(([, found]) => found.status !== 0) ?? [];
    if (name === undefined) return undefined;
    return `${outsideLine(name, longestName)}: ${outsideLine(check?.output, longestReason)}`;
  } catch {
    return undefined;
  }
}
