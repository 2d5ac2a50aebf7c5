import { plainLine as lineOf, withoutFullStop } from "../../../system/printable.ts";

/** Why an image could not be built, as far as the build's output shows. */
export interface BuildFailure {
  /** The last message of the failing tool. */
  readonly reason: string | undefined;
  /** The beginning of the step that failed, such as `RUN apt-get update`. */
  readonly step: string | undefined;
  readonly cause: "network" | "registry" | "runtime" | "unknown";
}

/** Reads the output of a failed `build` from either of Docker's builders or from Podman. */
export function readBuildFailure(output: string): BuildFailure {
  const lines = output.split("\n").map(plainLine);
  const reason = tellingLine(lines);
  return { reason, step: failedStep(lines), cause: causeOf(lines, reason) };
}

/** Removes colours and the prefix that BuildKit puts before a step's lines (`#12 3.456 `). */
const plainLine = (line: string): string =>
  line
    // oxlint-disable-next-line no-control-regex -- colours begin with one
    .replaceAll(/\u001B\[[0-9;]*m/g, "")
    .replace(/^#\d+ \d+\.\d+ /, "")
    .trim();

/** How tools begin their final message. The most specific pattern comes first. */
const tellingPatterns = [
  /\b(?:crun|runc)(?:: | creating | run failed| create failed)/,
  /^(?:E|Err(?::\d+)?)[: ] ?\S/,
  /^curl: \(\d+\)/,
  /\b(?:cannot find a valid baseurl|failed to download metadata|errors during downloading)\b/i,
  /\bOCI runtime\b/,
  /\b(?:pull access denied|manifest unknown|failed to resolve source metadata|initializing source docker|failed to do request)\b/i,
  /^failed: /,
];

function tellingLine(lines: readonly string[]): string | undefined {
  for (const pattern of tellingPatterns) {
    const found = lines.findLast((line) => pattern.test(line));
    if (found !== undefined) return withoutFullStop(lineOf(shortened(found)));
  }
  return undefined;
}

/** Removes the command that the runtime was about to run. */
const shortened = (line: string): string => line.replace(/^failed: /, "").replace(/ for \[.{0,500}\]/, "");

/** `Step 3/8 : …` (Docker's older builder), `#7 [2/6] …` (BuildKit), `STEP 3/8: …` (Podman). */
const stepPattern = /^(?:step \d+(?:\/\d+)? ?: |#\d+ \[[^\]]*\] )((?:RUN|FROM|COPY|ENV) .*)$/i;
const stepLength = 60;

function failedStep(lines: readonly string[]): string | undefined {
  const step = lines.findLast((line) => stepPattern.test(line));
  const text = stepPattern.exec(step ?? "")?.[1];
  return text === undefined ? undefined : lineOf(text, stepLength);
}

const signs: readonly (readonly [cause: BuildFailure["cause"], pattern: RegExp])[] = [
  ["runtime", /\b(?:OCI runtime|(?:crun|runc)(?:: | creating | run failed| create failed))/],
  [
    "registry",
    /pull access denied|manifest unknown|failed to resolve source metadata|initializing source docker|unauthorized: |toomanyrequests|pinging container registry/i,
  ],
  [
    "network",
    /temporary failure resolving|could not resolve|could not connect|unable to connect|connection timed out|connection refused|network is unreachable|failed to fetch|failed to download|cannot find a valid baseurl|errors during downloading|curl: \((?:5|6|7|28|35|56|60)\)/i,
  ],
];

/** Prefers the cause that the final message shows. */
function causeOf(lines: readonly string[], reason: string | undefined): BuildFailure["cause"] {
  const causeIn = (text: string): BuildFailure["cause"] | undefined =>
    signs.find(([, pattern]) => pattern.test(text))?.[0];
  return causeIn(reason ?? "") ?? causeIn(lines.join("\n")) ?? "unknown";
}
