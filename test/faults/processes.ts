/**
 * Finds and ends the processes that a world's programs have started: their environment or arguments name its folder for
 * temporary files.
 */
import { readdirSync, readFileSync } from "node:fs";

interface Process {
  readonly id: number;
  readonly words: string;
}

export function processesOf(temporaryFolder: string): readonly Process[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((name) =>
      [`/proc/${name}/environ`, `/proc/${name}/cmdline`].some((path) =>
        text(path).includes(temporaryFolder),
      ),
    )
    .map((name) => ({
      id: Number(name),
      words: text(`/proc/${name}/cmdline`).replaceAll("\0", " "),
    }))
    .filter(({ words }) => words !== "");
}

const endMs = 20_000;

/** Looks again until there are none: a process may have started another one while it was being ended. */
export async function endProcessesOf(temporaryFolder: string): Promise<void> {
  const deadline = performance.now() + endMs;
  for (
    let left = processesOf(temporaryFolder);
    left.length > 0;
    left = processesOf(temporaryFolder)
  ) {
    if (performance.now() > deadline)
      throw new Error(`these processes do not end: ${left.map(({ id }) => id).join(", ")}`);
    for (const { id } of left) kill(id);
    await Bun.sleep(10);
  }
}

function kill(id: number): void {
  try {
    process.kill(id, "SIGKILL");
  } catch (error) {
    // It has ended in the meantime, perhaps because another one has.
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

const text = (path: string): string => {
  try {
    return readFileSync(path, "latin1");
  } catch {
    // It has ended, or belongs to somebody else.
    return "";
  }
};
