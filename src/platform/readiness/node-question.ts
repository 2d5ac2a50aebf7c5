import { outside } from "../../outside-text.ts";
import { shellText } from "../../ssh/shell-text.ts";
import { parseJson } from "../../system/files/read-text.ts";
import { outsideLine, plainLine } from "../../system/printable.ts";
import { installPaths, installUnits } from "../install-paths.ts";
import { mostCheckSeconds, parsePlatformHead } from "../folder/platform-file.ts";
import { limitedLines } from "../limited.ts";
import { layouts } from "../layouts/find-layout.ts";
import { folderLayout } from "../layouts/folder.ts";
import type { Layout } from "../layouts/layout.ts";
import findLayout from "./find-layout.sh" with { type: "text" };
import nodeFile from "./node.sh" with { type: "text" };

/** Time limit for one run of the node's own check, unless the platform names one. */
export const usualCheckSeconds = 20;
/** The exit status of `timeout` for a command that it ended. */
const timedOut = 124;
const tailLines = 20;
/** Limit for a log, and for a file of which one line is needed. All answers must fit into a command's result. */
const tailBytes = 64_000;

/** Collects everything that `wait` needs from a node; node.sh says what it prints. */
export const nodeScript =
  layoutLines(layouts) +
  limitedLines +
  shellText(nodeFile, {
    STATUS_FILE: installPaths.installStatus,
    LOG_FILE: installPaths.installLog,
    UNIT: installUnits.install,
    CHECK_SECONDS: usualCheckSeconds,
    TIMED_OUT: timedOut,
    TAIL_LINES: tailLines,
    TAIL_BYTES: tailBytes,
    ...valuesOfEach(layouts, (layout) => ({
      SETUP_UNITS: layout.setupUnits.join(" "),
      CONFIG_FILE: layout.bootstrapConfigFile,
      CHECKS: layout.nodeChecks.map((words) => words.join(" ")).join("\n"),
      WRAPPER: layout.nodeCheckWrapper ?? "",
      FACTS_FILE: layout.factFiles?.facts ?? "",
    })),
  });

export interface NodeReport {
  /** The sum of the whole answer, with which the node recognizes it. Undefined: it did not send one. */
  readonly seen?: string | undefined;
  /** Empty: no installation has started. */
  readonly layout: string;
  /** `running` or `exit <status>`; empty: the install script has not started. */
  readonly status: string;
  /** systemd's ActiveState of the install unit; empty: not known. */
  readonly unit: string;
  /** ActiveState of the units that continue after the install script, by name. */
  readonly setup: Readonly<Record<string, string>>;
  /** Undefined: the check has not run, or does not exist yet. */
  readonly checkStatus: number | undefined;
  readonly checkOutput: string;
  /** The check's time limit, if the question allowed less; then the check has not run. */
  readonly checkSeconds?: number | undefined;
  /** Undefined: the platform has not reported it yet. */
  readonly isTlsEnabled: boolean | undefined;
  /** The facts of a platform that is a folder, as JSON; empty for other platforms, and before the installation. */
  readonly facts: string;
  /** The last lines of the log that explains why an installation failed. */
  readonly log: readonly string[];
}

/** Matches systemd's states and the names of layouts and units. */
const word = /^[\w.@-]{0,100}$/;
const installStatus = /^(running|exit \d{1,3})$/;
const sum = /^\d{1,10}-\d{1,10}$/;
const exitStatus = /^\d{1,3}$/;
const mostLogLines = 20;

/** Whether a node has answered at all: every answer of `nodeScript` has this line, even if its value is empty. */
export const isAnswer = (stdout: string): boolean => readPairs(stdout).all("layout").length > 0;

/** Parses the output of `nodeScript`. Skips lines and values of any other form. */
export function parseNodeReport(stdout: string): NodeReport {
  const { pairs, all } = readPairs(stdout);
  const value = (key: string, shape: RegExp): string | undefined =>
    all(key)
      .slice(0, 1)
      .find((text) => shape.test(text));
  const checkStatus = value("check.status", exitStatus);
  const limit = Number(value("check.limit", /^[1-9]\d{0,2}$/)) || undefined;
  return {
    seen: value("seen", sum),
    layout: value("layout", word) ?? "",
    status: value("status", installStatus) ?? "",
    unit: value("unit", word) ?? "",
    setup: Object.fromEntries(
      pairs
        .filter(
          (pair) => pair.key.startsWith("setup.") && word.test(pair.key) && word.test(pair.value),
        )
        .map((pair) => [pair.key.slice("setup.".length), pair.value]),
    ),
    checkStatus: checkStatus === undefined ? undefined : Number(checkStatus),
    checkOutput: all("check").join("\n"),
    checkSeconds: limit === undefined || limit > mostCheckSeconds ? undefined : limit,
    isTlsEnabled: saysTls(all("config")[0] ?? ""),
    facts: all("facts")[0] ?? "",
    log: all("log")
      .slice(-mostLogLines)
      .map((line) => plainLine(line)),
  };
}

/** Reads the `key=value` lines of a node's answer. */
export function readPairs(stdout: string) {
  const pairs = stdout.split("\n").flatMap(pairOf);
  const all = (key: string): readonly string[] =>
    pairs.filter((pair) => pair.key === key).map(({ value }) => value);
  return { pairs, all };
}

function pairOf(line: string): readonly { readonly key: string; readonly value: string }[] {
  const end = line.indexOf("=");
  return end < 0 ? [] : [{ key: line.slice(0, end), value: line.slice(end + 1) }];
}

/** Both layouts keep `ssl_enabled` there, as a boolean or as a string. */
function saysTls(config: string): boolean | undefined {
  return config === "" ? undefined : /"ssl_enabled"\s*:\s*"?true\b/i.test(config);
}

export function reportedLayout({
  layout: name,
  facts,
}: Pick<NodeReport, "layout" | "facts">): Layout | undefined {
  const layout = layouts.find((each) => each.name === name);
  if (layout?.factFiles === undefined) return layout;
  const platform = parsePlatformHead(facts);
  return platform.problems === undefined ? folderLayout(platform.value) : undefined;
}

/** Whether its web servers use TLS; undefined if that isn't known yet. */
export const hasTls = (
  { web }: Layout,
  { isTlsEnabled }: Pick<NodeReport, "isTlsEnabled">,
): boolean | undefined =>
  web?.endpoint === undefined ? isTlsEnabled : web.endpoint.scheme === "https";

export type NodeVerdict =
  | { readonly kind: "ready" }
  /** `reason` tells users what the wait is for. */
  | { readonly kind: "waiting"; readonly reason: string }
  /** The installation can no longer succeed. */
  | { readonly kind: "failed"; readonly reason: string; readonly log: readonly string[] };

const waiting = (reason: string): NodeVerdict => ({ kind: "waiting", reason });
/** Decides whether a node is ready. The installer's result counts first, then the platform's own check. */
export function judgeNode(report: NodeReport): NodeVerdict {
  const failure = failureOf(report);
  if (failure !== undefined) return { kind: "failed", reason: failure, log: report.log };
  if (report.layout === "") return waiting("not installed yet");
  if (report.status === "running" || (report.status === "" && isAtWork(report.unit)))
    return waiting("the installer is running");
  const busy = Object.entries(report.setup).find(([, state]) => isBusy(state));
  if (report.checkStatus === 0) return { kind: "ready" };
  if (busy !== undefined) return waiting(`${outside(busy[0])} is running`);
  if (report.checkSeconds !== undefined)
    return waiting(`its check runs, for ${report.checkSeconds} s at most`);
  if (report.checkStatus === timedOut) return waiting(`its check ${lateness(report)}`);
  if (report.checkStatus === undefined)
    return waiting("the platform's own check is not installed yet");
  return waiting(`its check says: ${checkReason(report)}`);
}

function lateness({ facts }: NodeReport): string {
  const platform = facts === "" ? undefined : parsePlatformHead(facts);
  const own = platform?.problems === undefined ? platform?.value.checkSeconds : undefined;
  const setting = facts === "" ? "" : " (checkTimeout in platform.yaml)";
  return `did not finish within ${own ?? usualCheckSeconds} s${setting}`;
}

function failureOf(report: NodeReport): string | undefined {
  const exit = /^exit (\d+)$/.exec(report.status)?.[1];
  if (exit !== undefined && exit !== "0") return `the install script exited with status ${exit}`;
  if (report.status === "running" && report.unit !== "" && !isAtWork(report.unit))
    return "the installer was interrupted";
  const failed = Object.entries(report.setup).find(([, state]) => state === "failed");
  return failed === undefined ? undefined : `the unit ${outside(failed[0])} failed`;
}

const isAtWork = (unit: string): boolean => unit === "active" || unit === "activating";
const isBusy = (state: string): boolean => state === "activating" || state === "reloading";

const longestName = 100;
const longestReason = 200;
const complaint = /^(critical|unknown|warning|error|fail)/i;

/**
 * Returns the first complaint of a check that answers in JSON (`{"checks": {NAME: {"output",
 * "status"}}}`). Otherwise returns the first line that looks like a complaint, or else the last
 * line.
 */
function checkReason({ checkOutput, checkStatus }: NodeReport): string {
  const found = complaintIn(checkOutput);
  if (found !== undefined) return found;
  const lines = checkOutput.split("\n").map((line) => line.trim());
  const line = lines.find((text) => complaint.test(text)) ?? lines.findLast((text) => text !== "");
  return outsideLine(line, longestReason) || `status ${checkStatus}`;
}

function complaintIn(output: string): string | undefined {
  try {
    const body = parseJson(output) as {
      checks?: Record<string, { output?: string; status?: number }>;
    };
    const [name, check] =
      Object.entries(body.checks ?? {}).find(([, found]) => found.status !== 0) ?? [];
    if (name === undefined) return undefined;
    return `${outsideLine(name, longestName)}: ${outsideLine(check?.output, longestReason)}`;
  } catch {
    return undefined;
  }
}

/** Shell lines that set `layout` to the name of the node's layout, or to nothing if no installation has started. */
export function layoutLines(known: readonly Layout[]): string {
  return shellText(findLayout, {
    LAYOUT_FILE: installPaths.layout,
    LAYOUTS: known.map(({ name }) => name).join(" "),
    ...valuesOfEach(known, ({ versionFile, installedMarker }) => ({
      VERSION_FILE: versionFile,
      MARKER: installedMarker,
    })),
  });
}

/** Values that differ by layout: `NAME_<layout>`. */
export function valuesOfEach(
  known: readonly Layout[],
  valuesOf: (layout: Layout) => Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const entries = known.flatMap((layout) =>
    Object.entries(valuesOf(layout)).map(
      ([name, value]) => [`${name}_${layout.name}`, value] as const,
    ),
  );
  return Object.fromEntries(entries);
}
