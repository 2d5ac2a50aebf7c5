import type { BackendKind } from "../../backend/contract.ts";
import type { Context } from "../../cli/command.ts";
import { columns } from "../../cli/layout.ts";
import type { Colours } from "../../cli/terminal/colours.ts";
import { type CheckResult, type Check, type Outcome, fail } from "../../model/check.ts";
import { formatDuration, numbered } from "../../system/amounts.ts";
import { machineChecks } from "./machine-checks.ts";
import { ClusterError, hintOf, messageOf } from "../../errors.ts";
import { type Progress, type Work, endedBy, passedMs } from "../../system/runtime.ts";
import type { CheckView, JsonResults } from "../json-results.ts";

/**
 * The limit for all checks together. The cloud's checks have shorter limits of their own, which
 * usually apply first.
 */
const allChecksMs = 40_000;

export async function executeDoctor(
  kind: BackendKind,
  input: Readonly<Record<string, unknown>>,
  context: Context,
): Promise<number> {
  const isVerbose = context.verbosity > 0;
  const ended = new AbortController();
  try {
    const ofKind = await kind.doctor.checks(endedBy(context, ended), input);
    const checks = machineChecks(context, ofKind);
    const found = await runChecks({ ...context, limitMs: allChecksMs }, checks);
    const results = found.map((result) => withFlags(result, context));
    context.output.result({
      text: reportText(results, { isVerbose, columns: context.columns }),
      paint: paintMark,
      data: {
        checks: results.map((result) => checkView(result, isVerbose)),
      } satisfies JsonResults["doctor"],
    });
    context.progress.note(summary(results));
    return results.some(({ status }) => status === "fail") ? 1 : 0;
  } finally {
    ended.abort();
  }
}

/** Checks use the neutral names of options. */
function withFlags(result: CheckResult, { nameFlags }: Context): CheckResult {
  const message = nameFlags(result.message);
  return "remedy" in result
    ? { ...result, message, remedy: nameFlags(result.remedy) }
    : { ...result, message };
}

const marks = { pass: "✔", warn: "!", fail: "✖", skip: "–" } as const;
const paints = { pass: "green", warn: "yellow", fail: "red", skip: "dim" } as const;

/** One row per check, with the fix below it. Checks that were skipped for the same reason share a row. */
export function reportText(
  found: readonly CheckResult[],
  { isVerbose, columns: width }: { readonly isVerbose: boolean; readonly columns: number },
): string {
  const rows = merged(found).map((result): readonly [string, string] => {
    const took = isVerbose ? ` (${timeText(result.ms)})` : "";
    const details = isVerbose ? (result.details ?? []) : [];
    const remedy = "remedy" in result ? [`→ ${result.remedy.replaceAll("\n", "\n  ")}`] : [];
    return [
      `${marks[result.status]} ${result.name}`,
      [result.message + took, ...details, ...remedy].join("\n"),
    ];
  });
  return columns(rows, width, { margin: 0, hang: 2 }).join("\n");
}

/** Paints the mark at the beginning of a check's first line. */
export function paintMark(line: string, colours: Colours): string {
  const status = Object.entries(marks).find(([, mark]) =>
    line.startsWith(`${mark} `),
  )?.[0] as keyof typeof marks;
  return status === undefined ? line : colours[paints[status]](line[0] ?? "") + line.slice(1);
}

/** At most so many skipped checks are named one by one. */
const mostNamed = 4;

function merged(results: readonly CheckResult[]): readonly CheckResult[] {
  const skipped = Map.groupBy(
    results.filter(({ status }) => status === "skip"),
    ({ message }) => message,
  );
  return results.flatMap((each) => {
    const group = each.status === "skip" ? (skipped.get(each.message) ?? []) : [];
    if (group.length <= mostNamed) return [each];
    return group[0] === each ? [{ ...each, name: numbered(group.length, "check") }] : [];
  });
}

/** Most checks take milliseconds, too short to show in tenths of a second. */
function timeText(ms: number): string {
  return ms < 1000 ? `${Math.round(ms)} ms` : formatDuration(ms);
}

function checkView(result: CheckResult, isVerbose: boolean): CheckView {
  return {
    name: result.name,
    status: result.status,
    message: result.message,
    ...("remedy" in result && { remedy: result.remedy }),
    ...(isVerbose && { milliseconds: Math.round(result.ms), details: result.details ?? [] }),
  };
}

function summary(results: readonly CheckResult[]): string {
  const count = (status: CheckResult["status"]): number =>
    results.filter((result) => result.status === status).length;
  const counts = [
    [count("fail"), "failed"],
    [count("warn"), count("warn") === 1 ? "warning" : "warnings"],
    [count("skip"), "skipped"],
  ] as const;
  const shown = counts
    .filter(([number]) => number > 0)
    .map(([number, what]) => `${number} ${what}`);
  return `${numbered(results.length, "check")}: ${shown.length === 0 ? "no problems found" : shown.join(", ")}.`;
}

type CheckWork = Pick<Work, "clock" | "progress" | "signal">;

/**
 * Runs all checks at once, and resolves with their results in the given order. It takes at most
 * `limitMs`, and rejects only if the signal is aborted.
 */
export async function runChecks(
  { clock, progress, limitMs, signal }: CheckWork & { readonly limitMs: number },
  checks: readonly Check[],
): Promise<readonly CheckResult[]> {
  return await Promise.all(
    checks.map(async (check) => {
      using step = progress.start("Check", check.name);
      const startedMs = passedMs(clock);
      const bounded = { ...check, limitMs: Math.min(check.limitMs, limitMs) };
      const outcome = await answerWithin({ clock, progress, signal }, bounded);
      step.done(outcome.status);
      return { name: check.name, ...outcome, ms: passedMs(clock) - startedMs };
    }),
  );
}

/** A check that continues after its limit, or after an abort, is left alone: its result no longer matters. */
async function answerWithin(
  { clock, progress, signal }: CheckWork,
  check: Check,
): Promise<Outcome> {
  const over = new AbortController();
  const bounded = AbortSignal.any([signal, over.signal]);
  const limit = async (): Promise<Outcome> => {
    await clock.sleep(check.limitMs, bounded);
    return fail(
      `The check did not finish within ${check.limitMs / 1000} s.`,
      "Try again with -vv to see every request and command.",
    );
  };
  try {
    return await Promise.race([check.run(bounded), limit()]);
  } catch (error) {
    signal.throwIfAborted();
    return failureOf(error, check, progress);
  } finally {
    over.abort();
  }
}

function failureOf(error: unknown, check: Check, progress: Progress): Outcome {
  if (error instanceof ClusterError)
    return fail(messageOf(error), hintOf(error) ?? "Run doctor again with -vv for details.");
  const what = error instanceof Error ? `${error.name}: ${messageOf(error)}` : messageOf(error);
  progress.detail(
    2,
    `The check "${check.name}" failed with an internal error: ${error instanceof Error ? error.stack : what}`,
  );
  return fail(
    `The check failed with an internal error: ${what}`,
    "Please report this bug with the output of doctor -vv.",
  );
}
