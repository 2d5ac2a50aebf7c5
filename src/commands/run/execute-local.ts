import { type Context, Interrupted, type Source } from "../../cli/command.ts";
import { type LocalRun, runLocal } from "../../cluster/run/run-local.ts";
import { linesOf } from "../../cluster/run-on-nodes.ts";
import { type Wanted, isWanted, runUntil, wantedStatus } from "../../cluster/run/run-until.ts";
import type { ClusterRecord } from "../../model/cluster-record.ts";
import { createOutputTail } from "../../ssh/connection/command-output.ts";
import { factsJson, inspectFacts } from "../inspect-view.ts";

interface LocalRequest extends Pick<
  LocalRun,
  "words" | "fails" | "login" | "variables" | "checkout" | "keepsOutput" | "scope"
> {
  /** Its name begins each line of output; undefined: the command has this program's own streams. */
  readonly shard: Source | undefined;
  readonly wanted: Wanted;
  /** How long the command is repeated; undefined: it runs once. */
  readonly untilMs: number | undefined;
}

/** Resolves with the exit status of the command on this computer. */
export async function executeLocal(
  cluster: ClusterRecord,
  { shard, wanted, untilMs, ...request }: LocalRequest,
  context: Context,
): Promise<number> {
  const { clock, progress, signal, output } = context;
  const facts = await inspectFacts(cluster, undefined, clock.now());
  const { stdin, stdout, stderr } = context.isTerminal;
  const print = linesOf((stream, line) => output.line(stream, shard, line));
  const hasOwnStreams = shard === undefined && untilMs === undefined;
  const run = async (onOutput: LocalRun["onOutput"], inner: AbortSignal): Promise<number> => {
    const local: LocalRun = {
      ...request,
      onOutput,
      program: context.programPath,
      json: factsJson(facts),
      cwd: context.cwd,
      isTerminal: hasOwnStreams && (stdin || stdout || stderr),
      signalOf: (reason) => (reason instanceof Interrupted ? reason.signalName : "SIGTERM"),
    };
    return await runLocal({ ...context, signal: inner }, cluster, local);
  };
  if (untilMs === undefined) {
    const status = await run(hasOwnStreams ? undefined : print.onOutput, signal);
    print.end();
    return wantedStatus(status, wanted);
  }
  const attempt = async (inner: AbortSignal) => {
    const tails = { stdout: createOutputTail(mostKept), stderr: createOutputTail(mostKept) };
    const status = await run((stream, chunk) => tails[stream].add(chunk), inner);
    return { status, tails, isDone: isWanted(status, wanted) };
  };
  const { status, tails } = await runUntil(attempt, { limitMs: untilMs, clock }, signal);
  for (const stream of ["stdout", "stderr"] as const)
    await print.onOutput(stream, tails[stream].text());
  print.end();
  if (!isWanted(status, wanted)) progress.note(`The command exited with status ${status}.`);
  return wantedStatus(status, wanted);
}

const mostKept = 4 * 1024 * 1024;
