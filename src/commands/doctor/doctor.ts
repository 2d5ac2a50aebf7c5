import { defineCommand, type Context } from "../../cli/command.ts";
import { formatDuration, outputFormat, verbose } from "../../cli/options/value-types.ts";
import { type Colours, isColoured, loadColours, noColours } from "../../cli/terminal/output-writer.ts";
import type { CheckResult } from "../../model/check.ts";
import type { BackendKind } from "../../backend/contract.ts";
import { placeOptions } from "../backend-options.ts";

/** The limit for all checks together. The cloud's checks have shorter limits of their own, which usually apply first. */
const limitMs = 40_000;

export const doctorCommand = (kind: BackendKind) =>
  defineCommand({
    name: "doctor",
    summary: `Check ${kind.doctor.subject} for common problems`,
    description:
      "Run all checks at the same time and print how to fix each problem. The checks change nothing. The exit code is 1 if a check fails.",
    positionals: {},
    options: { ...placeOptions(kind), output: outputFormat(["text", "json"]), verbose },
    examples: [
      { words: "doctor", summary: "Check everything before the first `create`" },
      { words: "doctor -v", summary: "Also print details, and how long each check took" },
    ],
    run: async (input, context) => {
      const { machineChecks } = await import("./machine-checks.ts");
      const { runChecks } = await import("./run-checks.ts");
      const isVerbose = context.verbosity > 0;
      const ended = new AbortController();
      const shared = AbortSignal.any([context.signal, ended.signal]);
      try {
        const checks = machineChecks(context, await kind.doctor.checks(input, context, shared));
        const found = await runChecks(checks, { ...context, limitMs }, context.signal);
        const results = found.map((result) => withFlags(result, context));
        const isColourful = context.isTerminal.stdout && isColoured(context.environment);
        const colours = isColourful ? await loadColours() : noColours;
        context.output.result({
          text: reportText(results, colours, isVerbose),
          data: { checks: results.map((result) => view(result, isVerbose)) },
        });
        context.progress.note(summary(results));
        return results.some(({ status }) => status === "fail") ? 1 : 0;
      } finally {
        ended.abort();
      }
    },
  });

/** Checks use the neutral names of options. */
function withFlags(result: CheckResult, { nameFlags }: Context): CheckResult {
  const message = nameFlags(result.message);
  return "remedy" in result ? { ...result, message, remedy: nameFlags(result.remedy) } : { ...result, message };
}

const marks = { pass: "✔", warn: "!", fail: "✖", skip: "–" } as const;
const paints = { pass: "green", warn: "yellow", fail: "red", skip: "dim" } as const;

/** One line per check, with the fix below it. */
export function reportText(results: readonly CheckResult[], colours: Colours, isVerbose: boolean): string {
  const width = Math.max(0, ...results.map(({ name }) => name.length));
  const indent = " ".repeat(width + 4);
  return results
    .flatMap((result) => {
      const paint = colours[paints[result.status]];
      const took = isVerbose ? colours.dim(` (${timeText(result.ms)})`) : "";
      return [
        `${paint(marks[result.status])} ${result.name.padEnd(width)}  ${result.message}${took}`,
        ...(isVerbose ? (result.details ?? []) : []).map((line) => indent + line),
        ...("remedy" in result ? [`${indent}→ ${result.remedy}`] : []),
      ];
    })
    .join("\n");
}

/** Most checks take milliseconds, too short to show in tenths of a second. */
function timeText(ms: number): string {
  return ms < 1000 ? `${Math.round(ms)} ms` : formatDuration(ms);
}

function view(result: CheckResult, isVerbose: boolean): Readonly<Record<string, unknown>> {
  return {
    name: result.name,
    status: result.status,
    message: result.message,
    ...("remedy" in result && { remedy: result.remedy }),
    ...(isVerbose && { milliseconds: Math.round(result.ms), details: result.details ?? [] }),
  };
}

function summary(results: readonly CheckResult[]): string {
  const count = (status: CheckResult["status"]): number => results.filter((result) => result.status === status).length;
  const counts = [
    [count("fail"), "failed"],
    [count("warn"), "with a warning"],
    [count("skip"), "skipped"],
  ] as const;
  const told = counts.filter(([number]) => number > 0).map(([number, what]) => `${number} ${what}`);
  return `${results.length} checks: ${told.length === 0 ? "no problems found" : told.join(", ")}.`;
}
