import { plainLine } from "../../system/printable.ts";

/** A node's report about itself (node-script.ts). */
export interface NodeReport {
  /** Empty: no installation has started. */
  readonly layout: string;
  /** `running` or `exit <status>`; empty: the install script has not started. */
  readonly status: string;
  /** systemd's ActiveState of the install unit. */
  readonly unit: string;
  /** ActiveState of the units that continue after the install script, by name. */
  readonly setup: Readonly<Record<string, string>>;
  /** Undefined: the check has not run, or does not exist yet. */
  readonly checkStatus: number | undefined;
  readonly checkOutput: string;
  /** Undefined: the platform has not reported it yet. */
  readonly isTlsEnabled: boolean | undefined;
  /** The last lines of the log that explains why an installation failed. */
  readonly log: readonly string[];
}

/** Matches systemd's states and the names of layouts and units. */
const word = /^[\w.@-]{0,100}$/;
const installStatus = /^(running|exit \d{1,3})$/;
const exitStatus = /^\d{1,3}$/;
const mostLogLines = 20;

/** Parses what `nodeScript` printed. It skips lines and values of any other form. */
export function parseNodeReport(stdout: string): NodeReport {
  const pairs = stdout.split("\n").flatMap(pairOf);
  const all = (key: string): string[] => pairs.filter((pair) => pair.key === key).map((pair) => pair.value);
  const value = (key: string, shape: RegExp): string | undefined =>
    all(key)
      .slice(0, 1)
      .find((text) => shape.test(text));
  const checkStatus = value("check.status", exitStatus);
  return {
    layout: value("layout", word) ?? "",
    status: value("status", installStatus) ?? "",
    unit: value("unit", word) ?? "",
    setup: Object.fromEntries(
      pairs
        .filter((pair) => pair.key.startsWith("setup.") && word.test(pair.key) && word.test(pair.value))
        .map((pair) => [pair.key.slice("setup.".length), pair.value]),
    ),
    checkStatus: checkStatus === undefined ? undefined : Number(checkStatus),
    checkOutput: all("check").join("\n"),
    isTlsEnabled: saysTls(all("config")[0] ?? ""),
    log: all("log")
      .slice(-mostLogLines)
      .map((line) => plainLine(line)),
  };
}

function pairOf(line: string): readonly { readonly key: string; readonly value: string }[] {
  const end = line.indexOf("=");
  return end < 0 ? [] : [{ key: line.slice(0, end), value: line.slice(end + 1) }];
}

/** Both layouts keep `ssl_enabled` there, as a boolean or as a string. */
function saysTls(config: string): boolean | undefined {
  return config === "" ? undefined : /"ssl_enabled"\s*:\s*"?true\b/i.test(config);
}
