import { createHash } from "node:crypto";
import { ClusterError } from "../../errors.ts";
import { parseClusterId, parseCreationId, parseRegion } from "../../model/parse-values.ts";
import { parseKey } from "../../ssh/keys.ts";
import { knownHostsText, parseKnownHosts } from "../../ssh/known-hosts.ts";
import { isMapping } from "../../system/is-mapping.ts";
import { parseJson } from "../../system/parse-json.ts";

/** What another computer needs to use a cluster, besides the right to ask the cloud for it. */
export interface HandOver {
  readonly clusterId: string;
  /** Tells the cluster from others that had or will have the same id. */
  readonly creationId: string;
  readonly region: string;
  /** The cluster's login key, in OpenSSH or PEM format. */
  readonly privateKey: string;
  /** The pinned host keys in wire format, by the name that known_hosts has for the host. */
  readonly hostKeys: ReadonlyMap<string, Buffer>;
}

const format = "cluster-e2e-hand-over";
const formatVersion = 1;
const armoredAge = "-----BEGIN AGE ENCRYPTED FILE-----";
const binaryAge = "age-encryption.org/";

/** A thousand nodes need a sixth of it. */
export const mostHandOverBytes = 1024 * 1024;

/** Returns the text of the file that `parseHandOver` reads. It holds the private key. */
export function handOverText({ hostKeys, ...handOver }: HandOver): string {
  const { clusterId, creationId, region, privateKey } = handOver;
  const knownHosts = knownHostsText(hostKeys).trimEnd().split("\n");
  const content = { format, formatVersion, clusterId, creationId, region, privateKey, knownHosts };
  return `${JSON.stringify({ ...content, sha256: checksum(content) }, undefined, 2)}\n`;
}

/** Throws `bad-usage` if the text is anything but a complete hand-over of this version. `name` names the file in messages. */
export async function parseHandOver(text: string, name: string): Promise<HandOver> {
  if (text.trimStart().startsWith(armoredAge) || text.startsWith(binaryAge)) throw encrypted(name);
  const found = text.length > mostHandOverBytes ? undefined : parseJson(text);
  if (!isMapping(found) || found["format"] !== format) throw otherFile(name);
  const version = found["formatVersion"];
  if (version !== formatVersion) throw otherVersion(name, typeof version === "number" && version > formatVersion);
  const { sha256, ...content } = found;
  if (sha256 !== checksum(content)) throw damaged(name, "its checksum is wrong");
  const clusterId = parseClusterId(content["clusterId"]);
  const creationId = parseCreationId(content["creationId"]);
  const region = parseRegion(content["region"]);
  const hostKeys = parseHostKeys(content["knownHosts"]);
  const privateKey = await parsePrivateKey(content["privateKey"]);
  if (clusterId === undefined || creationId === undefined || region === undefined) {
    throw damaged(name, "it does not name a cluster");
  }
  if (privateKey === undefined) throw damaged(name, "it has no usable private key");
  if (hostKeys === undefined) throw damaged(name, "it has no usable host keys");
  return { clusterId, creationId, region, privateKey, hostKeys };
}

/** Finds changes and losses on the way. It doesn't depend on spaces and line ends, and proves nothing about who wrote the file. */
const checksum = (content: unknown): string => createHash("sha256").update(JSON.stringify(content)).digest("hex");

function parseHostKeys(found: unknown): ReadonlyMap<string, Buffer> | undefined {
  if (!Array.isArray(found) || found.length === 0) return undefined;
  const keys = found.map((line: unknown) => (typeof line === "string" ? parseKnownHosts(line) : []));
  return keys.every((pinned) => pinned.length === 1) ? new Map(keys.flat()) : undefined;
}

async function parsePrivateKey(found: unknown): Promise<string | undefined> {
  if (typeof found !== "string" || !found.startsWith("-----BEGIN ")) return undefined;
  const key = await parseKey(found);
  return key instanceof Error || !key.isPrivateKey() ? undefined : found;
}

const exportAgain = "Export the cluster again on the machine that has its key, and copy the whole file.";

const encrypted = (name: string): ClusterError =>
  new ClusterError("bad-usage", `${name} is encrypted with age.`, {
    hint: "Decrypt it with age, and pipe the result to the import command, with - as its file.",
  });

const otherFile = (name: string): ClusterError =>
  new ClusterError("bad-usage", `${name} was not written by the export command, or only a part of it is there.`, {
    hint: exportAgain,
  });

const otherVersion = (name: string, isNewer: boolean): ClusterError =>
  new ClusterError(
    "bad-usage",
    `${name} was exported by ${isNewer ? "a newer" : "an older"} version of this program, in another format.`,
    { hint: "Use the same version of this program on both machines, and export the cluster again." },
  );

const damaged = (name: string, reason: string): ClusterError =>
  new ClusterError("bad-usage", `${name} is damaged: ${reason}.`, { hint: exportAgain });
