import { randomUUID } from "node:crypto";
import { link, rename, rm, writeFile } from "node:fs/promises";
import type { Clock } from "../runtime.ts";
import { errorCode } from "../files/private-file.ts";
import { poll } from "../poll.ts";
import { identifyThisProcess, isProcessAlive, parseProcessIdentity } from "./process-identity.ts";
import { waits } from "../waits.ts";
import { readOwnText } from "../files/read-text.ts";
import { parseJson } from "../parse-json.ts";

interface Waiting {
  readonly clock: Clock;
  /** Called once, if it has to wait. */
  readonly onWait: () => void;
  /** If another process still holds the lock at that time, `error` is thrown. Absent: wait without limit. */
  readonly giveUp?: { readonly atMs: number; readonly error: Error };
}

/**
 * Holds the file at `path`, whose folder exists, as a lock until the result is disposed of. Waits while another living process holds it. A killed
 * process loses its locks.
 */
export async function acquireProcessLock(
  path: string,
  { clock, onWait, giveUp }: Waiting,
  signal: AbortSignal,
): Promise<AsyncDisposable> {
  const text = JSON.stringify({ ...(await identifyThisProcess()), token: randomUUID() });
  let hasTold = false;
  const look = async (): Promise<true | undefined> => {
    if (await takeFreed(path, text, signal)) return true;
    if (!hasTold) onWait();
    hasTold = true;
    return undefined;
  };
  const rule = { ...waits.processLock, clock };
  if (giveUp === undefined) await poll(look, rule, signal);
  else if ((await poll(look, { ...rule, deadlineMs: giveUp.atMs }, signal)) === undefined) throw giveUp.error;
  return {
    [Symbol.asyncDispose]: async () => {
      if ((await readOwnText(path).catch(() => "")) === text) await rm(path, { force: true });
    },
  };
}

/** Takes the lock unless a living process holds it. */
async function takeFreed(path: string, text: string, signal: AbortSignal): Promise<boolean> {
  while (!(await take(path, text))) {
    signal.throwIfAborted();
    const holder = await readOwnText(path).catch(() => undefined);
    if (holder === undefined) continue;
    if (await isHeld(holder)) return false;
    await breakLock(path, holder);
  }
  return true;
}

/** Creating a link is atomic, so nobody sees a lock without its holder. */
async function take(path: string, text: string): Promise<boolean> {
  const draft = `${path}.${randomUUID()}`;
  await writeFile(draft, text, { mode: 0o600 });
  try {
    await link(draft, path);
    return true;
  } catch (error) {
    if (errorCode(error) === "EEXIST") return false;
    throw error;
  } finally {
    await rm(draft, { force: true });
  }
}

async function isHeld(holder: string): Promise<boolean> {
  try {
    const identity = parseProcessIdentity(parseJson(holder));
    return identity !== undefined && (await isProcessAlive(identity));
  } catch {
    return false;
  }
}

/** If several processes find the holder dead, one moves the lock away. A process that moved a new lock away gives it back. */
async function breakLock(path: string, holder: string): Promise<void> {
  const aside = `${path}.${randomUUID()}`;
  try {
    await rename(path, aside);
    if ((await readOwnText(aside)) !== holder) await link(aside, path);
  } catch (error) {
    const code = errorCode(error);
    if (code !== "ENOENT" && code !== "EEXIST") throw error;
  } finally {
    await rm(aside, { force: true });
  }
}
