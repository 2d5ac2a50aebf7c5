import { readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import type { TreeCopy } from "./tree-copy.ts";

interface TestRun {
  readonly outcome: "passed" | "failed" | "timed out";
  readonly seconds: number;
}

interface TestRunOptions {
  readonly limitSeconds: number;
  readonly moreArgs: readonly string[];
}

/** Runs test files in a copy until one fails. Kills every process that they leave running. */
export async function runTests(
  { path, temporary }: TreeCopy,
  files: readonly string[],
  { limitSeconds, moreArgs }: TestRunOptions,
  signal: AbortSignal,
): Promise<TestRun> {
  const started = performance.now();
  const child = Bun.spawn(
    [process.execPath, "test", "--timeout", "60000", "--bail", ...moreArgs, ...files],
    {
      cwd: path,
      env: { ...process.env, TMPDIR: temporary },
      stdio: ["ignore", "ignore", "ignore"],
      detached: true,
      killSignal: "SIGKILL",
      timeout: Math.ceil(limitSeconds * 1000),
      signal,
    },
  );
  await child.exited;
  await endProcessesOf(temporary);
  for (const name of await readdir(temporary))
    await rm(join(temporary, name), { recursive: true, force: true });
  signal.throwIfAborted();
  const seconds = (performance.now() - started) / 1000;
  return {
    outcome: seconds >= limitSeconds ? "timed out" : child.exitCode === 0 ? "passed" : "failed",
    seconds,
  };
}

/** Kills all processes whose TMPDIR is this folder. */
async function endProcessesOf(temporary: string): Promise<void> {
  const ids = (await readdir("/proc").catch(() => [])).filter((name) => /^\d+$/.test(name));
  for (const id of ids) {
    const environment = await readFile(`/proc/${id}/environ`, "latin1").catch(() => "");
    if (environment.split("\0").includes(`TMPDIR=${temporary}`)) endProcess(Number(id));
  }
}

function endProcess(id: number): void {
  try {
    process.kill(id, "SIGKILL");
  } catch {
    // It has already ended.
  }
}
