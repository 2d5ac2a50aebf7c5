import { ClusterError } from "../../errors.ts";
import { parseIpv4 } from "../../model/parse-values.ts";
import * as read from "../../model/reader.ts";
import type { RemoteResult } from "../../ssh/connection/connection.ts";
import { faultsFolder } from "../../ssh/correct-clock.ts";
import { shellText } from "../../ssh/shell-text.ts";
import { parseJson } from "../../system/files/read-text.ts";
import { outsideLines, plainLine } from "../../system/printable.ts";
import { bootstrapPort } from "../install/bootstrap/serve.ts";
import { type NodeConnection, completeScript, reasonOf } from "../install/phase.ts";
import { layouts } from "../layouts/find-layout.ts";
import { pairsIn } from "../readiness/node-question.ts";
import clockFile from "./clock.sh" with { type: "text" };
import diskFile from "./disk.sh" with { type: "text" };
import unitFile from "./fault-unit.sh" with { type: "text" };
import healFile from "./heal-faults.sh" with { type: "text" };
import networkFile from "./network.sh" with { type: "text" };
import observeFile from "./observe-node.sh" with { type: "text" };
import partitionFile from "./partition.sh" with { type: "text" };
import startFile from "./start-fault.sh" with { type: "text" };

export const faultKinds = ["partition", "network", "clock", "disk"] as const;
export type FaultKind = (typeof faultKinds)[number];

/** One node's part of a fault. */
export type FaultPart =
  /** Drops what arrives from these addresses. */
  | { readonly kind: "partition"; readonly sources: readonly string[] }
  /** Treats what it sends from this address as tc's netem does with these words. */
  | { readonly kind: "network"; readonly address: string; readonly netem: readonly string[] }
  | { readonly kind: "clock"; readonly offsetSeconds: number }
  /** `sharers`: how many nodes fill the memory of one computer at once; 0: each has a disk of its own. */
  | {
      readonly kind: "disk";
      readonly folder: string;
      readonly leaveBytes: number;
      readonly sharers: number;
    };

const line = read.refined(read.string, (text) => plainLine(text));

/** The record of a fault on a node. */
const recordReader = read.object({
  kind: read.oneOf(...faultKinds),
  description: line,
  /** Private addresses of nodes. Pinging them shows whether the fault has an effect. */
  links: read.list(parseIpv4),
  /** The folder whose free space shows it; empty if there is none. */
  folder: line,
});

export type FaultRecord = read.ValueOf<typeof recordReader>;

export interface NewFault {
  readonly id: string;
  readonly durationSeconds: number;
  readonly part: FaultPart;
  readonly record: FaultRecord;
}

/** A fault that a node has. Its texts are outside text, on one line each. */
export interface NodeFault extends FaultRecord {
  readonly id: string;
  readonly secondsLeft: number;
}

export interface Observation {
  readonly faults: readonly NodeFault[];
  readonly clockMs: number | undefined;
  readonly freeBytes: number | undefined;
  /** How long the fastest round trip to another node takes, by address; undefined: there was none. */
  readonly linksMs: ReadonlyMap<string, number | undefined>;
}

const unitPrefix = "cluster-e2e-fault-";
/** deadline.sh reads it. */
const deadlineOffset = "/run/cluster-e2e-clock-offset";

/** Returns the script that begins a fault; see start-fault.sh. */
export function startFaultScript({ id, durationSeconds, part, record }: NewFault): string {
  const unit = `${unitPrefix}${id}.service`;
  const own = {
    ID: id,
    FOLDER: faultsFolder,
    UNIT_FILE: `/run/systemd/system/${unit}`,
    DURATION: durationSeconds,
  };
  const [file, values] = fileOf(part);
  const script = `${shellText(file, { ...own, ...values })}${shellText(unitFile, { RECORD: JSON.stringify(record) })}`;
  return shellText(startFile, { ...own, UNIT: unit, SCRIPT_TEXT: script });
}

function fileOf(
  part: FaultPart,
): readonly [file: string, values: Readonly<Record<string, string | number>>] {
  const port = bootstrapPort(layouts);
  switch (part.kind) {
    case "partition":
      return [partitionFile, { SOURCES: part.sources.join(" "), PORT: port }];
    case "network":
      return [networkFile, { ADDRESS: part.address, NETEM: part.netem.join(" "), PORT: port }];
    case "clock":
      return [clockFile, { OFFSET: part.offsetSeconds, DEADLINE_OFFSET: deadlineOffset }];
    case "disk":
      return [diskFile, { FILL: part.folder, LEAVE: part.leaveBytes, SHARED: part.sharers || "" }];
  }
}

/** Begins a fault on a node, or leaves the node as it was and throws `remote-command-failed`. */
export async function startFault(
  node: NodeConnection,
  fault: NewFault,
  signal: AbortSignal,
): Promise<void> {
  const script = {
    name: "e2e-start-fault",
    text: startFaultScript(fault),
    limitMs: 330_000,
    words: [],
  };
  await runScript(node, { ...script, task: "begin the fault" }, signal);
}

/** Heals these faults on a node. Unknown faults count as healed. */
export async function healFaults(
  node: NodeConnection,
  ids: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  const text = shellText(healFile, { FOLDER: faultsFolder, UNIT_PREFIX: unitPrefix });
  await runScript(
    node,
    { name: "e2e-heal-faults", text, words: ids, limitMs: 120_000, task: "heal faults" },
    signal,
  );
}

export interface ObserveRequest {
  readonly links: readonly string[];
  readonly folder: string;
  readonly limitSeconds: number;
  readonly tries: number;
}

export const noLinks: ObserveRequest = { links: [], folder: "", limitSeconds: 1, tries: 1 };

export async function observeNode(
  node: NodeConnection,
  request: ObserveRequest,
  signal: AbortSignal,
): Promise<Observation> {
  const { links, limitSeconds, tries } = request;
  const values = {
    FOLDER: faultsFolder,
    DISK_FOLDER: request.folder,
    LIMIT: limitSeconds,
    TRIES: tries,
  };
  const limitMs = 30_000 + limitSeconds * tries * 1000;
  const script = {
    name: "e2e-observe-node",
    text: shellText(observeFile, values),
    words: links,
    limitMs,
  };
  return parseObservation(
    (await runScript(node, { ...script, task: "observe the node" }, signal)).stdout,
  );
}

interface Script {
  readonly name: string;
  readonly text: string;
  readonly words: readonly string[];
  readonly limitMs: number;
  /** Continues "cannot …". */
  readonly task: string;
}

async function runScript(
  { connection, reference }: NodeConnection,
  { name, text, words, limitMs, task }: Script,
  signal: AbortSignal,
): Promise<RemoteResult> {
  const argv = ["sh", "-s", "--", name, ...words];
  const command = {
    argv,
    sudo: true,
    stdin: completeScript(text),
    limitMs,
    task: `trying to ${task}`,
  };
  const result = await connection.run(command, signal);
  if (result.status === 0) return result;
  throw new ClusterError(
    "remote-command-failed",
    `${reference}: cannot ${task}: ${reasonOf(result)}.`,
    {
      facts: {
        node: reference,
        status: result.status,
        output: outsideLines(result.stderr || result.stdout, 5),
      },
    },
  );
}

const mostFaults = 100;

/** Parses the output of observe-node.sh. Skips lines and values of any other form. */
export function parseObservation(stdout: string): Observation {
  const pairs = pairsIn(stdout);
  const all = (key: string): readonly string[] =>
    pairs.filter((pair) => pair.key === key).map(({ value }) => value);
  const number = (text: string | undefined): number | undefined =>
    text !== undefined && /^\d{1,15}(?:\.\d{1,9})?$/.test(text) ? Number(text) : undefined;
  const clock = number(all("clock")[0]);
  return {
    faults: all("fault").slice(0, mostFaults).flatMap(faultOf),
    clockMs: clock === undefined ? undefined : clock * 1000,
    freeBytes: number(all("free")[0]),
    linksMs: new Map(
      all("link").flatMap((text) => {
        const [address, took] = text.split(" ");
        return parseIpv4(address) === undefined ? [] : [[address ?? "", number(took)]];
      }),
    ),
  };
}

function faultOf(text: string): readonly NodeFault[] {
  const [, id = "", left = "", json = ""] = /^([0-9a-f]{8}) (\d{1,8}) (\{.*)$/.exec(text) ?? [];
  const record = recordReader(parseJson(json));
  return record === undefined ? [] : [{ ...record, id, secondsLeft: Number(left) }];
}
