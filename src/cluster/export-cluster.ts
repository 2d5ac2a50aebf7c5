import type { Backend } from "../backend/contract.ts";
import type { SnapshotFile } from "../model/snapshot.ts";
import { ClusterError, OwnError, quoted } from "../errors.ts";
import { commandName } from "../references.ts";
import { type ClusterRecord, nodeReference } from "../model/cluster-record.ts";
import { parseClusterId, parseCreationId, parseRegion } from "../model/parse-values.ts";
import { parseKey } from "../ssh/keys.ts";
import { hostName, knownHostsText, parseKnownHosts } from "../ssh/openssh-files.ts";
import { type CreationFiles, creationFiles } from "../store/creation-folder.ts";
import { isMapping, object } from "../model/reader.ts";
import { sha256OfJson } from "../system/files/byte-source.ts";
import { isFileOrAbsent, writePrivateFile } from "../system/files/private-file.ts";
import { cannotWrite } from "../system/files/draft.ts";
import { readOwnText, parseJson } from "../system/files/read-text.ts";
import { outsideLine } from "../system/printable.ts";
import {
  type ProgramRun,
  minimalEnvironment,
  runOrMissing,
} from "../system/processes/run-program.ts";
import type { Environment } from "../system/runtime.ts";
import { assertKeyIsHere } from "./connections.ts";
import { findCluster } from "./find-cluster.ts";

/**
 * Returns the text of a file with which another computer can use the cluster. It holds the private
 * key. Throws `key-missing` if this machine has no key for the cluster, or no pinned host key for
 * one of its nodes, and `cluster-not-found` if it ends.
 */
export async function exportCluster(
  backend: Backend<unknown>,
  clusterId: string,
  signal: AbortSignal,
): Promise<string> {
  if (backend.cloud === undefined) throw usedHereOnly(backend.name);
  const cluster = await findCluster(backend, clusterId, signal);
  await assertKeyIsHere(cluster);
  const { id, creationId, region } = cluster;
  if (region === undefined) throw new TypeError("A cluster without a region cannot be handed over");
  const files = creationFiles(cluster.directory);
  const hostKeys = await readHostKeys(cluster, files);
  const privateKey = await readOwnText(files.privateKey);
  return handOverText({ clusterId: id, creationId, region, privateKey, hostKeys });
}

/**
 * Returns the host keys of the nodes that exist, of which there must be one. known_hosts may also
 * have keys of machines of a failed launch, at other addresses.
 */
async function readHostKeys(cluster: ClusterRecord, files: CreationFiles) {
  const pinned = new Map(parseKnownHosts(await readOwnText(files.knownHosts).catch(() => "")));
  const nodes = cluster.nodes.filter(({ state }) => state === "starting" || state === "running");
  // Nobody could import a file without host keys.
  if (nodes.length === 0)
    throw new ClusterError("cluster-not-found", `Cluster "${cluster.id}" has no running nodes.`, {
      hint: "Its time is over, or its instances were terminated: create it again.",
      facts: { cluster: cluster.id },
    });
  const keys = nodes.map((node): readonly [string, Buffer] => {
    const name = hostName(node.ssh.host, node.ssh.port);
    const key = pinned.get(name);
    if (key === undefined) throw hostKeyMissing(cluster, nodeReference(node));
    return [name, key];
  });
  return new Map(keys);
}

export const usedHereOnly = (kind: string): ClusterError =>
  new ClusterError(
    "bad-usage",
    `Clusters of this kind (${kind}) are reached from their own machine only.`,
  );

const hostKeyMissing = ({ id }: ClusterRecord, node: string): ClusterError =>
  new ClusterError(
    "key-missing",
    `The host key of ${node} of cluster "${id}" is not on this computer.`,
    {
      hint: `The cluster is still being created: export it after ${commandName("create")} has ended.`,
      facts: { cluster: id, node },
    },
  );

/**
 * Writes a file that only this user can read, atomically. Throws `bad-usage` if it can't be
 * written, or something else than a file is there.
 */
export async function saveExport(path: string, text: string): Promise<void> {
  try {
    if (await isFileOrAbsent(path)) return await writePrivateFile(path, text);
  } catch (error) {
    throw cannotWrite(path, error);
  }
  throw cannotWrite(path, "it is not a regular file");
}

/**
 * Encrypts a text for these recipients with `age` (https://age-encryption.org), as text. Throws
 * `machine-not-set-up` if age is not installed, `bad-usage` if it refuses a recipient, and an error
 * with the system's code if its disk is full.
 */
export async function encrypt(
  text: string,
  recipients: readonly string[],
  environment: Environment,
  signal: AbortSignal,
): Promise<string> {
  return await runEncryption({ words: ["-a"], stdin: text, recipients }, environment, signal);
}

/**
 * Returns a function that encrypts a stream for these recipients into a file, like `encrypt`;
 * undefined if there are no recipients.
 */
export const encryptionFor = (
  recipients: readonly string[],
  environment: Environment,
): SnapshotFile["encrypt"] =>
  recipients.length === 0
    ? undefined
    : async (stdin, path, signal) => {
        await runEncryption({ words: ["-o", path], stdin, recipients }, environment, signal);
      };

interface EncryptionRun extends Required<Pick<ProgramRun, "stdin">> {
  readonly words: readonly string[];
  readonly recipients: readonly string[];
}

async function runEncryption(
  { words, stdin, recipients }: EncryptionRun,
  environment: Environment,
  signal: AbortSignal,
): Promise<string> {
  if (recipients.some((recipient) => /^\s*AGE-SECRET-KEY-/i.test(recipient)))
    throw new ClusterError(
      "bad-usage",
      "A recipient is a private key of age. Such a key must stay secret.",
      {
        hint: "Pass its public key, age1…, which age-keygen -y prints.",
      },
    );
  const all = [...words, ...recipients.flatMap((recipient) => ["-r", recipient])];
  const run = { argv: ["age", "-e", ...all], stdin } as const;
  const { status, stdout, stderr } = await runOrMissing(
    { ...run, environment: minimalEnvironment(environment) },
    missingAge,
    signal,
  );
  if (status === 0) return stdout;
  const [reason = ""] = stderr.split("\n");
  if (/: (?:no space left on device|disk quota exceeded)$/.test(reason))
    throw Object.assign(new OwnError("age found the disk full"), { code: "ENOSPC" });
  if (status === undefined)
    throw new ClusterError("machine-not-set-up", "age was killed before it had encrypted all.", {
      hint: "Check this computer's memory, then try again.",
    });
  throw new ClusterError(
    "bad-usage",
    `age cannot encrypt for ${recipients.map(quoted).join(", ")}: ${outsideLine(reason) || `status ${status}`}`,
    {
      hint: "Pass a public key that age accepts: age1…, ssh-ed25519 … or ssh-rsa …",
    },
  );
}

const missingAge = (cause: unknown): ClusterError =>
  new ClusterError("machine-not-set-up", "There is no age on this computer's PATH.", {
    hint: "Install age (https://age-encryption.org), or leave out the recipient.",
    cause,
  });

export interface HandOver {
  readonly clusterId: string;
  /** Distinguishes the cluster from earlier and later ones with the same id. */
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

/** The maximum size of a hand-over. A thousand nodes need a sixth of it. */
export const mostHandOverBytes = 1024 * 1024;

export function handOverText({ hostKeys, ...handOver }: HandOver): string {
  const { clusterId, creationId, region, privateKey } = handOver;
  const knownHosts = knownHostsText(hostKeys).trimEnd().split("\n");
  const content = { format, formatVersion, clusterId, creationId, region, privateKey, knownHosts };
  return `${JSON.stringify({ ...content, sha256: sha256OfJson(content) }, undefined, 2)}\n`;
}

/**
 * Throws `bad-usage` if the text is anything but a complete hand-over of this version. `name` names
 * the file in messages.
 */
export async function parseHandOver(text: string, name: string): Promise<HandOver> {
  if (text.trimStart().startsWith(armoredAge) || text.startsWith(binaryAge))
    throw unreadable(`${name} is encrypted with age.`, decrypt);
  const found = text.length > mostHandOverBytes ? undefined : parseJson(text);
  if (!isMapping(found) || found["format"] !== format)
    throw unreadable(
      `${name} was not written by ${commandName("export")}, or only a part of it is there.`,
    );
  const version = found["formatVersion"];
  if (version !== formatVersion)
    throw otherVersion(name, typeof version === "number" && version > formatVersion);
  const { sha256, ...content } = found;
  if (sha256 !== sha256OfJson(content)) throw damaged(name, "its checksum is wrong");
  const cluster = readCluster(content);
  const hostKeys = parseHostKeys(content["knownHosts"]);
  const privateKey = await parsePrivateKey(content["privateKey"]);
  if (cluster === undefined) throw damaged(name, "it does not name a cluster");
  if (privateKey === undefined) throw damaged(name, "it has no usable private key");
  if (hostKeys === undefined) throw damaged(name, "it has no usable host keys");
  return { ...cluster, privateKey, hostKeys };
}

const readCluster = object({
  clusterId: parseClusterId,
  creationId: parseCreationId,
  region: parseRegion,
});

function parseHostKeys(found: unknown): ReadonlyMap<string, Buffer> | undefined {
  if (!Array.isArray(found) || found.length === 0) return undefined;
  const keys = found.map((line: unknown) =>
    typeof line === "string" ? parseKnownHosts(line) : [],
  );
  return keys.every((pinned) => pinned.length === 1) ? new Map(keys.flat()) : undefined;
}

async function parsePrivateKey(found: unknown): Promise<string | undefined> {
  if (typeof found !== "string" || !found.startsWith("-----BEGIN ")) return undefined;
  const key = await parseKey(found);
  return key instanceof Error || !key.isPrivateKey() ? undefined : found;
}

const exportAgain =
  "Export the cluster again on the machine that has its key, and copy the whole file.";

const unreadable = (message: string, hint: string = exportAgain): ClusterError =>
  new ClusterError("bad-usage", message, { hint });

const damaged = (name: string, reason: string): ClusterError =>
  unreadable(`${name} is damaged: ${reason}.`);

const otherVersion = (name: string, isNewer: boolean): ClusterError =>
  unreadable(
    `${name} was exported by ${isNewer ? "a newer" : "an older"} version of this program, in another format.`,
    "Use the same version of this program on both machines, and export the cluster again.",
  );

const decrypt = `Decrypt it with age, and pipe the result to ${commandName("import")}, with - as its file.`;
