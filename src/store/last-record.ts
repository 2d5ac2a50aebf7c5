import { stat } from "node:fs/promises";
import {
  type ClusterRecord,
  type ClusterState,
  type NodeRecord,
  type NodeState,
  byRoleAndIndex,
} from "../model/cluster-record.ts";
import {
  parseDistribution,
  parseIndex,
  parseIpv4,
  parseMoment,
  parsePort,
  parseRegion,
  parseRole,
  parseUserName,
  parseVariant,
  parseWebUi,
} from "../model/parse-values.ts";
import { isMapping } from "../system/checked.ts";
import { writePrivateFile } from "../system/files/private-file.ts";
import { readOwnText } from "../system/files/read-text.ts";
import { parseJson } from "../system/parse-json.ts";
import { creationFiles, creationOfDirectory, presentCreations } from "./creation-folder.ts";

/** Keeps a record in the cluster's folder, if this machine has that folder and may write to it. */
export async function keepLastRecord(cluster: ClusterRecord): Promise<void> {
  const path = creationFiles(cluster.directory).lastRecord;
  const text = `${JSON.stringify({ schemaVersion: 1, cluster }, undefined, 2)}\n`;
  try {
    if ((await readOwnText(path).catch(() => "")) !== text) await writePrivateFile(path, text);
  } catch {
    // Without it, the next command waits for the backend's answer.
  }
}

/**
 * Returns the last record of the newest cluster with this id in a place's folder. Undefined if there is none, if the cluster's time is over, or if some
 * of its nodes were not running then: a command would find the wrong nodes in its environment.
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
  try {
    if (((await stat(lastRecord)).mode & 0o022) !== 0) return undefined;
    return parseLastRecord(parseJson(await readOwnText(lastRecord)), directory);
  } catch {
    return undefined;
  }
}

/** Parses the JSON of such a file; undefined if it has another shape, or is about another creation than its folder. */
export function parseLastRecord(found: unknown, directory: string): ClusterRecord | undefined {
  const name = creationOfDirectory(directory);
  if (!isMapping(found) || found["schemaVersion"] !== 1 || !isMapping(found["cluster"])) return undefined;
  const { cluster } = found;
  const variant = parseVariant(cluster["variant"]);
  const distribution = parseDistribution(cluster["distribution"]);
  const region = parseRegion(cluster["region"]);
  const state = clusterStates.find((each) => each === cluster["state"]);
  const nodes = Array.isArray(cluster["nodes"]) ? cluster["nodes"].map(parseNode) : [];
  if (name === undefined || cluster["id"] !== name.clusterId || cluster["creationId"] !== name.creationId)
    return undefined;
  if (cluster["backend"] !== "cloud" || variant === undefined || distribution === undefined) return undefined;
  if (region === undefined || state === undefined || nodes.length === 0) return undefined;
  const known = nodes.filter((node) => node !== undefined);
  if (known.length < nodes.length) return undefined;
  const webUi = parseWebUi(cluster["webUi"]);
  return {
    id: name.clusterId,
    creationId: name.creationId,
    backend: "cloud",
    region,
    variant,
    distribution,
    state,
    createdAt: parseMoment(cluster["createdAt"]),
    expiresAt: parseMoment(cluster["expiresAt"]),
    ...(webUi !== undefined && { webUi }),
    nodes: known.toSorted(byRoleAndIndex),
    directory,
  };
}

const clusterStates: readonly ClusterState[] = ["starting", "running", "incomplete", "ending"];
const nodeStates: readonly NodeState[] = ["starting", "running", "ending", "ended"];

function parseNode(found: unknown): NodeRecord | undefined {
  if (!isMapping(found) || !isMapping(found["ssh"]) || !isMapping(found["web"])) return undefined;
  const { id, ssh, web } = found;
  const role = parseRole(found["role"]);
  const index = parseIndex(found["index"]);
  const state = nodeStates.find((each) => each === found["state"]);
  const user = parseUserName(ssh["user"]);
  const ports = [parsePort(ssh["port"]), parsePort(web["httpPort"]), parsePort(web["httpsPort"])];
  const [sshPort, httpPort, httpsPort] = ports;
  if (typeof id !== "string" || !/^i-[0-9a-f]{1,32}$/.test(id)) return undefined;
  if (role === undefined || index === undefined || state === undefined || user === undefined) return undefined;
  if (sshPort === undefined || httpPort === undefined || httpsPort === undefined) return undefined;
  return {
    id,
    role,
    index,
    state,
    publicAddress: parseIpv4(found["publicAddress"]),
    privateAddress: parseIpv4(found["privateAddress"]),
    // A node without an address has an empty one.
    ssh: { host: parseIpv4(ssh["host"]) ?? "", port: sshPort, user },
    web: { host: parseIpv4(web["host"]) ?? "", httpPort, httpsPort },
  };
}
