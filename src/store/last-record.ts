import { stat } from "node:fs/promises";
import { type ClusterRecord, byRoleAndIndex } from "../model/cluster-record.ts";
import {
  parseDistribution,
  parseIndex,
  parseIpv4,
  parseMoment,
  parsePlatform,
  parsePort,
  parseRegion,
  parseRole,
  parseUserName,
  parseVariant,
  parseWebUi,
} from "../model/parse-values.ts";
import * as read from "../model/reader.ts";
import { writePrivateFile } from "../system/files/private-file.ts";
import { readOwnJson, readOwnText } from "../system/files/read-text.ts";
import { creationFiles, creationOfDirectory, presentCreations } from "./creation-folder.ts";

/** Stores a record in the cluster's folder, if this machine has that folder and may write to it. */
export async function keepLastRecord(cluster: ClusterRecord): Promise<void> {
  const path = creationFiles(cluster.directory).lastRecord;
  const text = `${JSON.stringify({ schemaVersion: 1, cluster }, undefined, 2)}\n`;
  try {
    if ((await readOwnText(path).catch(() => "")) !== text) await writePrivateFile(path, text);
  } catch {
    // Without the record, the next command waits for the backend's answer.
  }
}

/**
 * Returns the last record of the newest cluster with this id in the folder of its backend and scope. Undefined if there
 * is none, if the cluster's time is over, or if some of its nodes were not running then: a command would find the wrong
 * nodes in its environment.
 */
export async function findLastRecord(
  root: string,
  clusterId: string,
  nowMs: number,
): Promise<ClusterRecord | undefined> {
  const records = await Promise.all((await presentCreations(root, clusterId)).map(readLastRecord));
  const [newest] = records
    .filter((record) => record !== undefined)
    .toSorted((a, b) => (b.createdAt?.getTime() ?? 0) - (a.createdAt?.getTime() ?? 0));
  const hasEnded = (newest?.expiresAt?.getTime() ?? Infinity) <= nowMs;
  return newest?.state === "running" && !hasEnded ? newest : undefined;
}

async function readLastRecord(directory: string): Promise<ClusterRecord | undefined> {
  const { lastRecord } = creationFiles(directory);
  const information = await stat(lastRecord).catch(() => undefined);
  if (information === undefined || (information.mode & 0o022) !== 0) return undefined;
  return readOwnJson(lastRecord, (found) => parseLastRecord(found, directory));
}

export function parseLastRecord(found: unknown, directory: string): ClusterRecord | undefined {
  const name = creationOfDirectory(directory);
  const cluster = readFile(found)?.cluster;
  if (
    name === undefined ||
    cluster?.id !== name.clusterId ||
    cluster.creationId !== name.creationId
  )
    return undefined;
  if (cluster.nodes.length === 0) return undefined;
  return { ...cluster, nodes: cluster.nodes.toSorted(byRoleAndIndex), directory };
}

/** A node without an address has an empty one. */
const host = read.withDefault(parseIpv4, "");

const readFile = read.object({
  schemaVersion: read.oneOf(1),
  cluster: read.object({
    id: read.string,
    creationId: read.string,
    backend: read.oneOf("cloud"),
    region: parseRegion,
    variant: parseVariant,
    distribution: parseDistribution,
    state: read.oneOf("starting", "running", "incomplete", "ending"),
    createdAt: read.lenient(parseMoment),
    expiresAt: read.lenient(parseMoment),
    webUi: read.lenient(parseWebUi),
    platform: read.lenient(parsePlatform),
    nodes: read.list(
      read.object({
        id: read.matching(/^i-[0-9a-f]{1,32}$/),
        role: parseRole,
        index: parseIndex,
        state: read.oneOf("starting", "running", "ending", "ended"),
        publicAddress: read.lenient(parseIpv4),
        privateAddress: read.lenient(parseIpv4),
        ssh: read.object({ host, port: parsePort, user: parseUserName }),
        web: read.object({ host, httpPort: parsePort, httpsPort: parsePort }),
      }),
    ),
  }),
});
