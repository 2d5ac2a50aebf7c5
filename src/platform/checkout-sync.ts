import type { Variant } from "../cluster/record.ts";
import { ClusterError } from "../errors.ts";
import type { Connection, RemoteResult } from "../ssh/connection.ts";
import type { FileSums } from "../system/file-hash.ts";
import { isMapping } from "../system/is-mapping.ts";
import { checkoutArchive } from "./checkout-archive.ts";
import { changedFiles, isSettled, parseManifest } from "./checkout-manifest.ts";
import { syncPlan } from "./checkout-plan.ts";
import { remoteManifestScript, syncStatuses, unpackScript } from "./checkout-scripts.ts";
import type { Checkout } from "./checkout.ts";
import type { Layout } from "./layout.ts";

export interface SyncTarget {
  readonly connection: Connection;
  /** Such as `master_0`: errors name it. */
  readonly reference: string;
  readonly layout: Layout;
  /** Shared by the targets of one sync. */
  readonly sumOf: FileSums;
}

export interface SyncReport {
  /** Files of the checkout that the master has now. */
  readonly files: number;
  /** Those of them that had to be sent, and their bytes. */
  readonly sentFiles: number;
  readonly sentBytes: number;
}

/**
 * Syncs a checkout to one master, all or nothing; only what has changed is sent. Fails as `not-installed`, `bad-usage` (the checkout is
 * not of the cluster's kind), `transfer-failed` or `connection-failed`.
 */
export async function syncCheckout(checkout: Checkout, target: SyncTarget, signal: AbortSignal): Promise<SyncReport> {
  const variant = await installedVariant(target, signal);
  const whole = syncPlan(checkout, variant, target.layout);
  const manifest = parseManifest(await runScript(target, remoteManifestScript(whole), undefined, signal));
  const plan = await changedFiles(whole, manifest, target.sumOf, signal);
  if (!isSettled(plan, manifest)) await runScript(target, unpackScript(plan), checkoutArchive(plan), signal);
  return {
    files: whole.files.length,
    sentFiles: plan.files.length,
    sentBytes: plan.files.reduce((sum, file) => sum + file.sizeBytes, 0),
  };
}

/** The variant that the node itself tells; `not-installed` where it has no version file yet. */
async function installedVariant(target: SyncTarget, signal: AbortSignal): Promise<Variant> {
  const { connection, reference, layout } = target;
  const result = await connection.run(
    { argv: ["cat", layout.versionFile], sudo: true, limitMs: shortLimitMs, task: "reading its version file" },
    signal,
  );
  if (result.status !== 0) throw notInstalled(reference, `${layout.versionFile} does not exist`);
  const body = parsedJson(result.stdout);
  const variant = isMapping(body) ? layout.installedVariant(body) : undefined;
  if (variant === undefined) throw notInstalled(reference, `${layout.versionFile} does not tell the variant`);
  return variant;
}

const shortLimitMs = 60_000;
const limitMs = 600_000;

async function runScript(
  { connection, reference }: SyncTarget,
  script: string,
  stdin: AsyncIterable<Uint8Array> | undefined,
  signal: AbortSignal,
): Promise<string> {
  const command = {
    argv: ["sh", "-c", script],
    sudo: true,
    limitMs,
    task: "syncing the checkout",
    ...(stdin === undefined ? {} : { stdin }),
  };
  const result = await connection.run(command, signal);
  if (result.status === 0) return result.stdout;
  const isFull = /no space left on device|disk quota exceeded/i.test(result.stderr);
  const reason = isFull ? "no space is left on its disk" : lastLine(result);
  if (result.status === syncStatuses.notInstalled) throw notInstalled(reference, reason);
  throw new ClusterError(
    "transfer-failed",
    `The checkout could not be synced to ${reference}: ${reason}. It has its former files.`,
    {
      hint: "Remove the cause, if it is not the connection, and sync again.",
      transient: result.status === syncStatuses.brokenTransfer && !isFull,
      facts: { node: reference, status: result.status },
    },
  );
}

const notInstalled = (reference: string, reason: string): ClusterError =>
  new ClusterError("not-installed", `The cluster software is not installed on ${reference} yet: ${reason}.`, {
    hint: "Wait for the installation to end (command wait), then sync again.",
    facts: { node: reference },
  });

const lastLine = ({ status, stderr }: RemoteResult): string => stderr.trim().split("\n").at(-1) || `status ${status}`;

function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
