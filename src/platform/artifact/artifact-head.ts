import { constants } from "node:fs";
import { open, realpath } from "node:fs/promises";
import { ClusterError } from "../../errors.ts";
import { commandName, optionName } from "../../references.ts";
import type { Variant } from "../../model/cluster-record.ts";
import { problem } from "../../model/checked.ts";
import { type FileFacts, factsOf } from "../../system/files/listed-file.ts";
import { requestPart } from "../../system/files/download.ts";
import { errorCode } from "../../system/files/private-file.ts";
import { unreadableReason } from "../../system/files/read-text.ts";
import { outsideLine } from "../../system/printable.ts";
import { retry } from "../../system/retry.ts";
import type { Clock } from "../../system/runtime.ts";
import { watchdog } from "../../system/time-limit.ts";
import { ruleOf, waits } from "../../system/waits.ts";
import { type PlatformFacts, parsePlatformHead, upgradeLine } from "../folder/platform-file.ts";
import { hasUpgrade } from "../folder/read-folder.ts";
import { layouts } from "../layouts/find-layout.ts";
import { folderLayout } from "../layouts/folder.ts";
import type { Layout } from "../layouts/layout.ts";
import {
  type ArtifactLocation,
  type WebLocation,
  artifactUnreachable,
  webArtifact,
} from "./artifact-request.ts";

export interface ArtifactHead {
  /** The file on this machine from which it was read. */
  readonly file?: FileFacts;
  /** Undefined if the second line doesn't name it; then a node has to run the artifact with `--version`. */
  readonly variant: Variant | undefined;
  readonly layout: Layout | undefined;
  /** Undefined for a release. */
  readonly platform: PlatformFacts | undefined;
  /** Whether the platform brings what upgrades its nodes; undefined if the head doesn't show it. */
  readonly hasUpgrade: boolean | undefined;
  readonly sizeBytes: number | undefined;
}

interface HeadReading {
  readonly clock: Clock;
  /** Milliseconds to wait for one answer, and after which no further try begins. */
  readonly limitMs: number;
}

/** Time limit for an artifact's server; a local disk needs none. */
export const headLimitMs = 15_000;

/**
 * Reads the artifact's first 16 KiB, wherever it is. Throws `artifact-unreachable` (it doesn't
 * exist, or no answer) or `artifact-invalid` (not a script); the message names the masked location.
 */
export async function readArtifactHead(
  location: ArtifactLocation,
  reading: HeadReading,
  signal: AbortSignal,
): Promise<ArtifactHead> {
  if (location.kind === "folder")
    return platformHeadOf(location.platform.facts, hasUpgrade(location.platform.files));
  if (location.kind === "file") {
    const start = await readFileStart(location.path);
    return { ...parseHead(start, location.shown), file: start.file };
  }
  const rule = ruleOf({ ...waits.artifactHead, limitMs: reading.limitMs }, reading.clock);
  const start = await retry(
    (inner) => readWebStart(location, reading.limitMs, inner),
    rule,
    signal,
  );
  return parseHead(start, location.shown);
}

/** Throws `variant-mismatch` if the artifact names another variant than the requested one. */
export function assertVariant(found: Variant | undefined, asked: Variant, shown: string): void {
  if (found === undefined || found === asked) return;
  if (found === "none") {
    throw new ClusterError(
      "variant-mismatch",
      `The platform in ${shown} has no variants, but ${optionName("variant")} is ${asked}.`,
      {
        hint: `Leave ${optionName("variant")} out.`,
        facts: { artifact: shown, artifactVariant: found, variant: asked },
      },
    );
  }
  const isUnasked = asked === "none";
  throw new ClusterError(
    "variant-mismatch",
    `The artifact ${shown} is the ${found} variant, but ${optionName("variant")} ${isUnasked ? "was not chosen" : `is ${asked}`}.`,
    {
      hint: `Pass ${optionName("variant", found)}${isUnasked ? "" : `, or use the ${asked} artifact`}.`,
      facts: { artifact: shown, artifactVariant: found, variant: asked },
    },
  );
}

/** Parses the beginning of an artifact. Throws `artifact-invalid` if it isn't a script. */
export function parseHead(start: ArtifactStart, shown: string): ArtifactHead {
  const text = new TextDecoder().decode(start.bytes);
  if (!text.startsWith("#!")) {
    throw new ClusterError(
      "artifact-invalid",
      `${shown} is not a release artifact: ${whatItIs(text)}`,
      {
        hint: "Pass the installer generator script itself, or the folder of a platform; a URL must lead directly to the script, without a login or a download page.",
        facts: { artifact: shown },
      },
    );
  }
  const spelling = /^# variant: *(\S+)\s*$/.exec(text.split("\n")[1] ?? "")?.[1] ?? "";
  const layout = layouts.find(({ headVariants }) => Object.hasOwn(headVariants, spelling));
  if (layout?.factFiles !== undefined)
    return { ...readPlatform(text, shown), sizeBytes: start.sizeBytes };
  return {
    variant: layout?.headVariants[spelling],
    layout,
    platform: undefined,
    hasUpgrade: layout && layout.upgrade !== undefined,
    sizeBytes: start.sizeBytes,
  };
}

const platformHeadOf = (platform: PlatformFacts, isUpgrade: boolean): ArtifactHead => ({
  variant: "none",
  layout: folderLayout(platform),
  platform,
  hasUpgrade: isUpgrade,
  sizeBytes: undefined,
});

/** A packed folder's third line holds its facts. */
function readPlatform(text: string, shown: string): ArtifactHead {
  const [, , third = "", fourth] = text.split("\n");
  const line = /^# platform: (.*)$/.exec(third)?.[1];
  const facts = line === undefined ? problem("its third line is missing") : parsePlatformHead(line);
  if (facts.problems === undefined) return platformHeadOf(facts.value, fourth === upgradeLine);
  throw new ClusterError(
    "artifact-invalid",
    `${shown} does not describe its platform: ${facts.problems.map((each) => outsideLine(each)).join("; ")}.`,
    { hint: `Pack the folder again, with ${commandName("pack")}.`, facts: { artifact: shown } },
  );
}

function whatItIs(text: string): string {
  if (text === "") return "it is empty.";
  if (/^\s*(<!doctype html|<html)/i.test(text)) return "it is a web page.";
  return "it does not begin like a script (#!).";
}

/** The first bytes of an artifact: 16 KiB, or fewer if it is smaller. */
interface ArtifactStart {
  readonly bytes: Uint8Array;
  /** Size of the whole artifact, if known. */
  readonly sizeBytes: number | undefined;
}

const startBytes = 16 * 1024;

/**
 * Requests the first bytes, once, and gives up after `limitMs`. If the server sends everything, the
 * rest isn't read.
 */
async function readWebStart(
  location: WebLocation,
  limitMs: number,
  signal: AbortSignal,
): Promise<ArtifactStart> {
  using limit = watchdog(limitMs, signal);
  try {
    const wanted = { from: 0, to: startBytes - 1 };
    const part = await requestPart(webArtifact(location), wanted, limit.signal);
    // There is no first byte, so the file is empty.
    if (part === undefined) return { bytes: new Uint8Array(), sizeBytes: 0 };
    return { bytes: await takeStart(part.body), sizeBytes: part.totalBytes };
  } catch (error) {
    if (!limit.hasExpired()) throw error;
    throw artifactUnreachable(location.shown, `no answer within ${limitMs / 1000} s.`, {
      transient: true,
    });
  }
}

/** Reads the first bytes of a local file. Throws `artifact-unreachable`, or `artifact-invalid` if it isn't a file. */
export async function readFileStart(
  path: string,
): Promise<ArtifactStart & { readonly file: FileFacts }> {
  try {
    // Without O_NONBLOCK, opening a pipe would wait until somebody writes to it.
    const source = await realpath(path);
    await using file = await open(source, constants.O_RDONLY | constants.O_NONBLOCK);
    const information = await file.stat();
    if (!information.isFile()) {
      const what = information.isDirectory() ? "it is a folder" : "it is not a file";
      throw new ClusterError("artifact-invalid", `${path} is not a release artifact: ${what}.`, {
        hint: pathHint,
        facts: { artifact: path },
      });
    }
    const { bytesRead, buffer } = await file.read(Buffer.alloc(startBytes), 0, startBytes, 0);
    return {
      bytes: buffer.subarray(0, bytesRead),
      sizeBytes: information.size,
      file: factsOf(source, information),
    };
  } catch (error) {
    if (error instanceof ClusterError) throw error;
    throw new ClusterError("artifact-unreachable", `Cannot read ${path}: ${fileReason(error)}`, {
      hint: pathHint,
      facts: { artifact: path, code: errorCode(error) },
    });
  }
}

const pathHint =
  "Pass the folder of a platform, an example such as example:etcd, or the path or URL of a release artifact.";

async function takeStart(body: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body) {
    chunks.push(chunk);
    length += chunk.length;
    if (length >= startBytes) break;
  }
  return Buffer.concat(chunks).subarray(0, startBytes);
}

const fileReason = (error: unknown): string =>
  ["ENOENT", "ENOTDIR"].includes(errorCode(error) ?? "")
    ? "there is no such folder or file."
    : `${unreadableReason(error)}.`;
