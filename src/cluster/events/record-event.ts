import { messageOf } from "../../errors.ts";
import { isWanted } from "../run/run-until.ts";
import { type ClusterRecord, type NodeRecord, nodeReference } from "../../model/cluster-record.ts";
import type { Course, NewEvent } from "../../model/event.ts";
import { mapTexts } from "../../outside-text.ts";
import type { ReadinessRequest } from "../../platform/readiness/readiness.ts";
import { appendEvent } from "../../store/events.ts";
import { maskedCommand } from "../../system/masked-command.ts";
import { maskedPrintable, plainLine } from "../../system/printable.ts";
import type { Runtime, StepChange } from "../../system/runtime.ts";
import { type NodeOutput, lastLines } from "./kept-output.ts";

/** What recording needs of a runtime. */
export interface Recorder extends Pick<Runtime, "progress"> {
  readonly clock: Pick<Runtime["clock"], "now">;
}

const longestText = 1000;

/** Appends an event to the cluster's own, with secrets masked. Never fails. */
export function recordEvent(
  directory: string,
  event: NewEvent,
  { clock, progress }: Recorder,
): void {
  const shown = (text: string): string =>
    plainLine(
      maskedPrintable(text, (given) => progress.mask(given)),
      longestText,
    );
  const at = new Date(clock.now()).toISOString();
  const { kind, ...fields } = event;
  // Lines of output are masked already, and keep their indentation.
  const output = event.kind === "run" && event.output !== undefined && { output: event.output };
  appendEvent(directory, { at, kind, ...(mapTexts(fields, shown) as object), ...output } as never);
}

/** Records the beginning or the end of a command's step. */
export function recordStep(
  directory: string,
  { atMs, ...change }: StepChange,
  progress: Runtime["progress"],
): void {
  recordEvent(directory, { kind: "phase", ...change }, { clock: { now: () => atMs }, progress });
}

/** Records the beginning of a task and how it ended. */
export async function recording<Result>(
  directory: string,
  eventOf: (course: Course) => NewEvent,
  runtime: Recorder,
  task: () => Promise<Result>,
): Promise<Result> {
  recordEvent(directory, eventOf("begun"), runtime);
  try {
    const result = await task();
    recordEvent(directory, eventOf("done"), runtime);
    return result;
  } catch (error) {
    recordEvent(directory, eventOf("failed"), runtime);
    throw error;
  }
}

/** A wait that lasts an hour may change its reasons all the time. */
const mostChecks = 2000;

/** Returns a function that takes all nodes' answers, and records those that differ from the last ones. */
export function checkRecorder(
  directory: string,
  runtime: Recorder,
): NonNullable<ReadinessRequest["onAnswers"]> {
  const last = new Map<string, string>();
  const counted = { checks: 0 };
  return (answers) => {
    for (const { node, verdict } of answers) {
      const reference = nodeReference(node);
      const isReady = verdict.kind === "ready";
      const text = isReady ? "ready" : verdict.reason;
      if (last.get(reference) === text || counted.checks >= mostChecks) continue;
      last.set(reference, text);
      counted.checks += 1;
      recordEvent(directory, { kind: "check", node: reference, isReady, text }, runtime);
    }
  };
}

interface RecordedRun {
  readonly words: readonly string[];
  readonly fails?: boolean;
  /** What the command has printed so far; absent where secrets in it may be unknown. */
  readonly outputs?: (() => readonly NodeOutput[]) | undefined;
}

/**
 * Records that a command begins on nodes, or on this computer if there are none. Disposal records
 * that it did not run to its end, unless an end is recorded.
 */
export function runRecorder(
  { directory }: Pick<ClusterRecord, "directory">,
  { words, fails = false, outputs = () => [] }: RecordedRun,
  nodes: readonly NodeRecord[],
  runtime: Recorder,
) {
  const run = {
    kind: "run",
    command: maskedCommand(words),
    nodes: nodes.map(nodeReference),
  } as const;
  recordEvent(directory, { ...run, course: "begun" }, runtime);
  const state = { hasEnded: false };
  const wanted = { fails, isRemote: nodes.length > 0 };
  /** Records the statuses of all nodes, and why they say nothing about the command, if they don't. */
  const end = (statuses: readonly number[], given?: string): void => {
    if (state.hasEnded) return;
    state.hasEnded = true;
    const text = given ?? (fails ? "it was expected to fail" : undefined);
    const reason = text === undefined ? {} : { text };
    const known = statuses.length === 0 ? {} : { status: Math.max(...statuses) };
    const isGood = statuses.length > 0 && statuses.every((status) => isWanted(status, wanted));
    const course = isGood ? "done" : "failed";
    const lines = lastLines(outputs(), (shown) => runtime.progress.mask(shown));
    const output = lines.length === 0 ? {} : { output: lines };
    recordEvent(directory, { ...run, course, ...known, ...reason, ...output }, runtime);
  };
  const unfinished = "it was interrupted, or the connection to the node was lost";
  return { end, [Symbol.dispose]: () => end([], unfinished) };
}

/** Records the nodes' states. */
export function recordNodes(
  directory: string,
  nodes: readonly NodeRecord[],
  runtime: Recorder,
): void {
  for (const node of nodes)
    recordEvent(directory, { kind: "node", node: nodeReference(node), state: node.state }, runtime);
}

/** Records why a cluster was not created, or why a command failed that the nodes had carried out. */
export const recordFailure = (
  directory: string,
  title: "create" | "run",
  error: unknown,
  runtime: Recorder,
): void =>
  recordEvent(directory, { kind: "result", title, isGood: false, text: messageOf(error) }, runtime);

export function recordCommandLine(
  directory: string,
  line: string | undefined,
  runtime: Recorder,
): void {
  if (line !== undefined) recordEvent(directory, { kind: "command", line }, runtime);
}
