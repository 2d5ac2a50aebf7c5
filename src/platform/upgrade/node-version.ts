import { type NodeRecord, nodeReference } from "../../model/cluster-record.ts";
import { isMapping } from "../../model/reader.ts";
import type { ConnectionPool } from "../../ssh/connection/connection-pool.ts";
import { shellText } from "../../ssh/shell-text.ts";
import { parseJson } from "../../system/files/read-text.ts";
import { plainLine } from "../../system/printable.ts";
import { ask } from "../ask.ts";
import { type PlatformFacts, parsePlatformHead } from "../folder/platform-file.ts";
import { installPaths, installUnits } from "../install-paths.ts";
import { layouts } from "../layouts/find-layout.ts";
import { layoutLines, readPairs, valuesOfEach } from "../readiness/node-question.ts";
import versionFile from "./node-version.sh" with { type: "text" };

/** A node's report about its platform's version and its last upgrade. All texts are from outside, on one line each. */
export interface NodeVersion {
  /** Empty: no installation has started. */
  readonly layout: string;
  /** Only platforms that are folders have a name. */
  readonly name: string;
  /** Empty: it isn't known, or the platform isn't installed. */
  readonly version: string;
  readonly facts: PlatformFacts | undefined;
  readonly upgrade: NodeUpgrade;
}

interface NodeUpgrade {
  /** `none`: there was none yet, or its unit has not begun. */
  readonly state: "none" | "running" | "succeeded" | "failed";
  /** Why it failed; empty otherwise. */
  readonly reason: string;
  /** The last lines of its log, if it failed. */
  readonly log: readonly string[];
  /** The version before the upgrade, and its target version. */
  readonly from: string;
  readonly to: string;
}

const tailLines = 20;
const tailBytes = 64_000;

export const nodeVersionScript =
  layoutLines(layouts) +
  shellText(versionFile, {
    STATUS_FILE: installPaths.upgradeStatus,
    VERSIONS_FILE: installPaths.upgradeVersions,
    LOG_FILE: installPaths.upgradeLog,
    UNIT: installUnits.upgrade,
    TAIL_LINES: tailLines,
    TAIL_BYTES: tailBytes,
    ...valuesOfEach(layouts, ({ versionFile: file, factFiles }) => ({
      VERSION_FILE: file,
      FACTS_FILE: factFiles?.facts ?? "",
    })),
  });

const question = {
  name: "e2e-node-version",
  script: nodeVersionScript,
  task: "read the platform's version",
  parse: parseNodeVersion,
} as const;

export async function readNodeVersion(
  node: NodeRecord,
  connections: ConnectionPool,
  signal: AbortSignal,
): Promise<NodeVersion> {
  const connection = await connections.connect(node, signal);
  return ask({ connection, reference: nodeReference(node) }, question, signal);
}

const word = /^[\w.@-]{0,100}$/;
const longestVersion = 100;

/** Parses the output of `nodeVersionScript`. Skips lines and values of any other form. */
export function parseNodeVersion(stdout: string): NodeVersion {
  const { all } = readPairs(stdout);
  const first = (key: string): string => all(key)[0] ?? "";
  const found = parseJson(first("version"));
  const text = (key: string): string =>
    isMapping(found) ? plainLine(found[key], longestVersion) : "";
  const facts = parsePlatformHead(first("facts"));
  const layout = first("layout");
  return {
    layout: word.test(layout) ? layout : "",
    name: text("name"),
    version: text("version"),
    facts: facts.problems === undefined ? facts.value : undefined,
    upgrade: {
      ...upgradeState(first("status"), first("unit")),
      log: all("log")
        .slice(-tailLines)
        .map((line) => plainLine(line)),
      from: plainLine(first("from"), longestVersion),
      to: plainLine(first("to"), longestVersion),
    },
  };
}

function upgradeState(status: string, unit: string): Pick<NodeUpgrade, "state" | "reason"> {
  const exit = /^exit (\d{1,3})$/.exec(status)?.[1];
  if (exit === "0") return { state: "succeeded", reason: "" };
  if (exit !== undefined)
    return { state: "failed", reason: `its upgrade script exited with status ${exit}` };
  const isUnknown = unit === "" && status === "running";
  if (unit === "active" || unit === "activating" || isUnknown)
    return { state: "running", reason: "" };
  return status === "running"
    ? { state: "failed", reason: "its upgrade was interrupted" }
    : { state: "none", reason: "" };
}
