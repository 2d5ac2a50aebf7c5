import { createPrivateKey, createPublicKey } from "node:crypto";
import { ClusterError, messageOf } from "../errors.ts";
import { readOwnText, unreadableReason } from "../system/files/read-text.ts";
import { errorCode } from "../system/files/private-file.ts";
import { isPlainLine } from "../system/printable.ts";
import { minimalEnvironment, runProgram } from "../system/processes/run-program.ts";
import type { Environment } from "../system/runtime.ts";
import { type KeyPair, ed25519Pair, longestKey, parseKey, pem } from "./keys.ts";

/**
 * Reads a user's own private key and derives its public half. The result is in the form that both
 * OpenSSH and ssh2 read: OpenSSH's own format or the older PEM, whatever line ends, marks or other
 * text the file has, and also if the file is PKCS #8. Throws `bad-usage` with the reason if the key
 * can't open nodes without a person, or current OpenSSH refuses it.
 */
export async function readKeyPair(path: string): Promise<KeyPair> {
  const refuse = (reason: string, hint: string, cause?: unknown): never => {
    throw new ClusterError("bad-usage", `Cannot use the SSH key ${path}: ${reason}.`, {
      hint,
      cause,
    });
  };
  const block = privateBlock(await readText(path));
  if (block === undefined) throw noPrivateKey(path);
  if ("reason" in block) return refuse(block.reason, block.hint);
  const found =
    block.label === "PRIVATE KEY"
      ? fromPkcs8(block.base64)
      : { privateKey: pem(block.label, block.base64) };
  if ("reason" in found) return refuse(found.reason, found.hint);
  const parsed = await parseKey(found.privateKey);
  if (parsed instanceof Error)
    return refuse(
      `it is damaged, or of a type that nodes don't accept (${messageOf(parsed)})`,
      otherKey,
      parsed,
    );
  const problem = typeProblem(parsed.type) ?? lengthProblem(parsed.type, parsed.getPublicPEM());
  if (problem !== undefined) return refuse(problem, otherKey);
  const comment = isPlainLine(parsed.comment) ? parsed.comment : "";
  const publicKey = [parsed.type, parsed.getPublicSSH().toString("base64"), comment]
    .filter(Boolean)
    .join(" ");
  return { privateKey: found.privateKey, publicKey };
}

interface OwnKeyCopy {
  /** Where the user has the key. */
  readonly path: string;
  readonly file: string;
  readonly publicKey: string;
}

/**
 * Lets OpenSSH itself read the private key in a file of ours, because `run` hands it to ssh. Throws
 * `bad-usage` if it can't, or reads another key. Without `ssh-keygen` on this machine it proves
 * nothing.
 */
export async function proveOpenSshReads(
  { path, file, publicKey }: OwnKeyCopy,
  environment: Environment,
  signal: AbortSignal,
): Promise<void> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(proofLimitMs)]);
  const run = {
    argv: ["ssh-keygen", "-y", "-f", file],
    environment: minimalEnvironment(environment),
  } as const;
  const end = await runProgram(run, limit).catch((error: unknown) => {
    signal.throwIfAborted();
    if (errorCode(error) === "ENOENT") return undefined;
    return { status: undefined, stdout: "", stderr: messageOf(error) };
  });
  if (end === undefined) return;
  const keyOf = (line: string): string => line.trim().split(" ").slice(0, 2).join(" ");
  if (end.status === 0 && keyOf(end.stdout) === keyOf(publicKey)) return;
  throw new ClusterError(
    "bad-usage",
    `Cannot use the SSH key ${path}: OpenSSH on this computer does not read it.`,
    {
      hint: otherKey,
      cause: new Error(
        end.status === 0 ? "ssh-keygen -y reads another key from it" : end.stderr.trim(),
      ),
    },
  );
}

const proofLimitMs = 60_000;

async function readText(path: string): Promise<string> {
  try {
    return await readOwnText(path);
  } catch (error) {
    throw new ClusterError(
      "bad-usage",
      `Cannot read the SSH key ${path}: ${unreadableReason(error)}.`,
      {
        hint: "Pass the file of a private key.",
        cause: error,
      },
    );
  }
}

const noPrivateKey = (path: string): ClusterError =>
  new ClusterError("bad-usage", `${path} is not a private key.`, {
    hint: "Pass the private key in OpenSSH or PEM format, which is usually the file with the same name but without .pub.",
  });

const otherKey =
  "Pass another key, such as one that you create with: ssh-keygen -t ed25519 -N '' -f FILE";
const withoutPassphrase = "Create a copy without it: cp KEY COPY && ssh-keygen -p -N '' -f COPY";

interface Refusal {
  readonly reason: string;
  readonly hint: string;
}

interface PrivateBlock {
  /** Such as `OPENSSH PRIVATE KEY`. */
  readonly label: string;
  readonly base64: string;
}

/**
 * Finds the private key in a file, which may also have comments, parameters or certificates.
 * Undefined if it has none.
 */
function privateBlock(text: string): PrivateBlock | Refusal | undefined {
  if (text.length > longestKey)
    return { reason: "the file is longer than any key", hint: otherKey };
  const foreign = foreignFormats.find(({ sign }) => text.includes(sign));
  if (foreign !== undefined) return foreign;
  const [first, ...others] = text.matchAll(
    /-----BEGIN ((?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY)-----/g,
  );
  if (first === undefined) return undefined;
  if (others.length > 0)
    return { reason: "the file has several private keys", hint: "Pass a file with one." };
  const [mark, label = ""] = first;
  const start = first.index + mark.length;
  const end = text.indexOf(`-----END ${label}-----`, start);
  if (end < 0) return { reason: "its end is missing", hint: otherKey };
  const body = text.slice(start, end);
  if (label === "ENCRYPTED PRIVATE KEY")
    return {
      reason: "it has a passphrase",
      hint: "Create a copy without it: openssl pkey -in KEY -out COPY",
    };
  if (/^Proc-Type:.*ENCRYPTED/m.test(body))
    return { reason: "it has a passphrase", hint: withoutPassphrase };
  const base64 = body.replace(/^[A-Za-z-]{1,40}:.*$/gm, "").replace(/\s+/g, "");
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(base64))
    return { reason: "it is damaged: it has characters that no key has", hint: otherKey };
  return (
    (label === "OPENSSH PRIVATE KEY" ? openSshProblem(base64) : undefined) ?? { label, base64 }
  );
}

const foreignFormats: readonly (Refusal & { readonly sign: string })[] = [
  {
    sign: "PuTTY-User-Key-File-",
    reason: "it is in PuTTY's format",
    hint: "Convert it with PuTTY's own program: puttygen KEY -O private-openssh -o COPY",
  },
  {
    sign: "---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----",
    reason: "it is in the format of SSH.COM",
    hint: "Convert it: ssh-keygen -i -f KEY >COPY",
  },
  {
    sign: "\0",
    reason: "it is not UTF-8 text",
    hint: "Save the key as UTF-8; convert one in DER with: openssl pkey -inform DER -in KEY -out COPY",
  },
];

/** What its unencrypted head says. See https://github.com/openssh/openssh-portable/blob/master/PROTOCOL.key. */
function openSshProblem(base64: string): Refusal | undefined {
  const data = Buffer.from(base64, "base64");
  const [cipher, kdf, options] = wireStrings(data.subarray(magicLength), 3);
  if (cipher === undefined || kdf === undefined || options === undefined)
    return { reason: "it is damaged: its beginning is incomplete", hint: otherKey };
  const countAt = magicLength + 3 * 4 + cipher.length + kdf.length + options.length;
  const [publicKey] = wireStrings(data.subarray(countAt + 4), 1);
  const [type] = wireStrings(publicKey ?? data.subarray(0, 0), 1);
  const problem =
    type === undefined
      ? "it is damaged: its public half is missing"
      : typeProblem(type.toString("latin1"));
  if (problem !== undefined) return { reason: problem, hint: otherKey };
  return cipher.toString("latin1") === "none"
    ? undefined
    : { reason: "it has a passphrase", hint: withoutPassphrase };
}

const magicLength = "openssh-key-v1\0".length;

/** Reads strings from the beginning of SSH's wire format, as many of them as are there completely. */
function wireStrings(data: Buffer, count: number): readonly Buffer[] {
  const found: Buffer[] = [];
  for (let at = 0; found.length < count && at + 4 <= data.length;) {
    const end = at + 4 + data.readUInt32BE(at);
    if (end > data.length) break;
    found.push(data.subarray(at + 4, end));
    at = end;
  }
  return found;
}

const acceptedTypes = /^(?:ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(?:256|384|521))$/;

function typeProblem(type: string): string | undefined {
  if (acceptedTypes.test(type)) return undefined;
  if (type.startsWith("sk-"))
    return "it belongs to a security key, which a person must touch at each login";
  if (type === "ssh-dss") return "it is a DSA key, which current OpenSSH refuses";
  return "it is of a type that nodes don't accept; use ed25519, RSA, or ECDSA with a NIST curve";
}

/** The system-wide rules of Red Hat's systems refuse RSA below 2048 bits; OpenSSH refuses RSA above 16,384. */
function lengthProblem(type: string, publicPem: string): string | undefined {
  if (type !== "ssh-rsa") return undefined;
  const bits = createPublicKey(publicPem).asymmetricKeyDetails?.modulusLength ?? 0;
  if (bits >= 2048 && bits <= 16_384) return undefined;
  return `it is an RSA key of ${bits} bits, and nodes accept 2048 to 16384`;
}

/** ssh2 doesn't read PKCS #8, and neither do older OpenSSH clients for ed25519. */
function fromPkcs8(base64: string): Pick<KeyPair, "privateKey"> | Refusal {
  try {
    const key = createPrivateKey(pem("PRIVATE KEY", base64));
    const older = (type: "pkcs1" | "sec1"): { readonly privateKey: string } => ({
      privateKey: key.export({ format: "pem", type }).toString(),
    });
    if (key.asymmetricKeyType === "ed25519") return ed25519Pair(key, "");
    if (key.asymmetricKeyType === "rsa") return older("pkcs1");
    if (key.asymmetricKeyType === "ec") return older("sec1");
    return {
      reason: typeProblem(key.asymmetricKeyType === "dsa" ? "ssh-dss" : "") ?? "",
      hint: otherKey,
    };
  } catch (error) {
    return {
      reason: `it is damaged, or of a type that nodes don't accept (${messageOf(error)})`,
      hint: otherKey,
    };
  }
}
