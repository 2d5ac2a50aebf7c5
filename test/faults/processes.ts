/**
 * Finds the processes that a world's programs have started: their environment or arguments name its folder for
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
      [`/proc/${name}/environ`, `/proc/${name}/cmdline`].some((path) => text(path).includes(temporaryFolder)),
    )
    .map((name) => ({ id: Number(name), words: text(`/proc/${name}/cmdline`).replaceAll("\0", " ") }))
    .filter(({ words }) => words !== "");
}

const text = (path: string): string => {
  try {
    return readFileSync(path, "latin1");
  } catch {
    // It has ended, or belongs to somebody else.
    return "";
  }
};
