import { randomUUID } from "node:crypto";
import { link, readFile, rename, rm, writeFile } from "node:fs/promises";
import type { Clock } from "../clock.ts";
import { errorCode } from "../error-code.ts";
import { identifyThisProcess, isProcessAlive, parseProcessIdentity } from "./process-identity.ts";

const pauseMs = 250;

interface Waiting {
  readonly clock: Clock;
  /** Called once, if there is anything to wait for. */
  readonly onWait: () => void;
  /** What is thrown where the lock is still another's then; absent: it is waited for without end. */
  readonly giveUp?: { readonly atMs: number; readonly error: Error };
}

/**
 * Holds the file at `path`, whose folder exists, as a lock until it is disposed of; waits while another living process has it. A process that
 * was killed loses its locks.
 */
export async function acquireProcessLock(
  path: string,
  { clock, onWait, giveUp }: Waiting,
  signal: AbortSignal,
): Promise<AsyncDisposable> {
  const text = JSON.stringify({ ...(await identifyThisProcess()), token: randomUUID() });
  for (let tries = 0; !(await take(path, text)); tries += 1) {
    signal.throwIfAborted();
    const holder = await readFile(path, "utf8").catch(() => undefined);
    if (holder === undefined) continue;
    if (await isHeld(holder)) {
      if (tries === 0) onWait();
      if (giveUp !== undefined && clock.now() >= giveUp.atMs) throw giveUp.error;
      await clock.sleep(pauseMs, signal);
    } else await breakLock(path, holder);
  }
  return {
    [Symbol.asyncDispose]: async () => {
      if ((await readFile(path, "utf8").catch(() => "")) === text) await rm(path, { force: true });
    },
  };
}

/** A link is made whole or not at all: nobody sees a lock without its holder. */
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
    const identity = parseProcessIdentity(JSON.parse(holder));
    return identity !== undefined && (await isProcessAlive(identity));
  } catch {
    return false;
  }
}

/** Of several that find the holder dead one moves the lock away; who moved away a new one gives it back. */
async function breakLock(path: string, holder: string): Promise<void> {
  const aside = `${path}.${randomUUID()}`;
  try {
    await rename(path, aside);
    if ((await readFile(aside, "utf8")) !== holder) await link(aside, path);
  } catch (error) {
    const code = errorCode(error);
    if (code !== "ENOENT" && code !== "EEXIST") throw error;
  } finally {
    await rm(aside, { force: true });
  }
}
