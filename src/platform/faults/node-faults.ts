import { parseIpv4 } from "../../model/parse-values.ts";
import * as read from "../../model/reader.ts";
import { faultsFolder } from "../../ssh/correct-clock.ts";
import { shellText } from "../../ssh/shell-text.ts";
import { parseJson } from "../../system/files/read-text.ts";
import { plainLine } from "../../system/printable.ts";
import { ask } from "../ask.ts";
import { bootstrapPort } from "../install/bootstrap/serve.ts";
import { type NodeConnection, completeScript } from "../install/phase.ts";
import { layouts } from "../layouts/find-layout.ts";
import { readPairs } from "../readiness/node-question.ts";
import type { Observed } from "./fault-kind.ts";
import { faultKinds, faultRows } from "./fault-kinds.ts";
import unitFile from "./fault-unit.sh" with { type: "text" };
import healFile from "./heal-faults.sh" with { type: "text" };
import observeFile from "./observe-node.sh" with { type: "text" };
import startFile from "./start-fault.sh" with { type: "text" };

const line = read.refined(read.string, (text) => plainLine(text));

/** The record of a fault on a node. */
const recordReader = read.object({
  kind: read.oneOf(...faultKinds),
  description: line,
  /** Private addresses of nodes. Pinging them shows whether the fault has an effect. */
  links: read.list(parseIpv4),
  /** Values for the function `measure` of the kind's script; absent if there is nothing to measure. */
  measure: read.optional(read.mapping(read.matching(/^[A-Z]{1,20}$/), line)),
  /** Whether it counts as healed only when every node's check passes; absent: it doesn't wait for that. */
  awaitsCheck: read.optional(read.boolean),
});

export type FaultRecord = read.ValueOf<typeof recordReader>;

interface NewFault {
  readonly id: string;
  readonly durationSeconds: number;
  /** For the kind's script. */
  readonly values: Readonly<Record<string, string | number>>;
  readonly record: FaultRecord;
}

/** A fault that a node has. Its texts are outside text, on one line each. */
export interface NodeFault extends FaultRecord {
  readonly id: string;
  readonly secondsLeft: number;
}

export interface Observation extends Omit<Observed, "hereMs"> {
  readonly faults: readonly NodeFault[];
}

const unitPrefix = "cluster-e2e-fault-";

/** Returns the script that begins a fault; see start-fault.sh. */
export async function startFaultScript({
  id,
  durationSeconds,
  values,
  record,
}: NewFault): Promise<string> {
  const unit = `${unitPrefix}${id}.service`;
  const own = {
    ID: id,
    FOLDER: faultsFolder,
    UNIT_FILE: `/run/systemd/system/${unit}`,
    DURATION: durationSeconds,
    PORT: bootstrapPort(layouts),
  };
  const { default: file } = await faultRows[record.kind].script();
  const script = `${shellText(file, { ...own, ...values })}${shellText(unitFile, { RECORD: JSON.stringify(record), KIND: record.kind })}`;
  return shellText(startFile, { ...own, UNIT: unit, SCRIPT_TEXT: script });
}

/** Begins a fault on a node, or leaves the node as it was and throws `remote-command-failed`. */
export async function startFault(
  node: NodeConnection,
  fault: NewFault,
  signal: AbortSignal,
): Promise<void> {
  const question = {
    name: "e2e-start-fault",
    script: completeScript(await startFaultScript(fault)),
    task: "begin the fault",
    parse: () => {},
  } as const;
  await ask(node, question, signal);
}

/** Heals these faults on a node. Unknown faults count as healed. */
export async function healFaults(
  node: NodeConnection,
  ids: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  const text = shellText(healFile, { FOLDER: faultsFolder, UNIT_PREFIX: unitPrefix });
  const question = {
    name: "e2e-heal-faults",
    script: completeScript(text),
    words: ids,
    task: "heal faults",
    parse: () => {},
  } as const;
  await ask(node, question, signal);
}

export interface ObserveRequest {
  readonly links: readonly string[];
  /** What to measure, as a fault's record says. */
  readonly record?: Pick<FaultRecord, "kind" | "measure"> | undefined;
  readonly limitSeconds: number;
  readonly tries: number;
}

export const noLinks: ObserveRequest = { links: [], limitSeconds: 1, tries: 1 };

/** Returns the script that observes a node; see observe-node.sh. */
export async function observeScript({
  record,
  limitSeconds,
  tries,
}: ObserveRequest): Promise<string> {
  const measure = record?.measure;
  const values = { FOLDER: faultsFolder, LIMIT: limitSeconds, TRIES: tries };
  const script =
    record === undefined || measure === undefined
      ? ""
      : shellText((await faultRows[record.kind].script()).default, { ID: "", ...measure });
  return (
    script + shellText(observeFile, { ...values, MEASURE: measure === undefined ? "" : "yes" })
  );
}

export async function observeNode(
  node: NodeConnection,
  request: ObserveRequest,
  signal: AbortSignal,
): Promise<Observation> {
  const question = {
    name: "e2e-observe-node",
    script: completeScript(await observeScript(request)),
    words: request.links,
    limitMs: 30_000 + request.limitSeconds * request.tries * 1000,
    task: "observe the node",
    parse: parseObservation,
  } as const;
  return ask(node, question, signal);
}

const mostFaults = 100;
const mostMeasured = 20;

/** Parses the output of observe-node.sh. Skips lines and values of any other form. */
export function parseObservation(stdout: string): Observation {
  const { pairs, all } = readPairs(stdout);
  const number = (text: string | undefined): number | undefined =>
    text !== undefined && /^\d{1,15}(?:\.\d{1,9})?$/.test(text) ? Number(text) : undefined;
  const clock = number(all("clock")[0]);
  return {
    faults: all("fault").slice(0, mostFaults).flatMap(faultOf),
    clockMs: clock === undefined ? undefined : clock * 1000,
    measured: new Map(
      pairs
        .filter(({ key }) => !["fault", "clock", "link"].includes(key))
        .slice(0, mostMeasured)
        .map(({ key, value }) => [key, plainLine(value)]),
    ),
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
