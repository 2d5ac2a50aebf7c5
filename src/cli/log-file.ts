import { closeSync, existsSync, fchmodSync, openSync, writeSync } from "node:fs";
import type { Clock } from "../system/clock.ts";

/** So many early lines are kept for a log file whose place isn't known yet. */
const keptLines = 2000;
/** What one run may write of details: `wait` asks every node every few seconds, for an hour. */
const mostDetailBytes = 20_000_000;

/**
 * Everything that was told, with time stamps, in a file that this user alone can read. Written synchronously: what led to a crash or a kill
 * must be in it.
 */
export class LogFile {
  readonly #clock: Clock;
  readonly #early: string[] = [];
  readonly #target: { path: string | undefined; descriptor: number | undefined; bytes: number } = {
    path: undefined,
    descriptor: undefined,
    bytes: 0,
  };

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Where the log is; absent until it has a file, and when that was removed with its folder. */
  get path(): string | undefined {
    const { path } = this.#target;
    return path !== undefined && existsSync(path) ? path : undefined;
  }

  /** Whether there is room for what isn't told to anybody. */
  get takesDetails(): boolean {
    return this.#target.bytes < mostDetailBytes;
  }

  /** Begins the file, or goes on at its end, with what was told before. Throws what the file system says. */
  open(path: string): void {
    if (path === this.#target.path) return;
    this.close();
    const descriptor = openSync(path, "a", 0o600);
    // The file may have been there before, with another mode.
    fchmodSync(descriptor, 0o600);
    this.#target.path = path;
    this.#target.descriptor = descriptor;
    for (const line of this.#early.splice(0)) writeSync(descriptor, line);
  }

  /** `text` must be masked and printable already. */
  write(text: string): void {
    const line = `${new Date(this.#clock.now()).toISOString()} ${text.trimEnd().replaceAll("\n", "\n  ")}\n`;
    const { descriptor } = this.#target;
    if (descriptor !== undefined) this.#append(descriptor, line);
    else if (this.#early.push(line) > keptLines) this.#early.shift();
  }

  close(): void {
    const { descriptor } = this.#target;
    this.#target.descriptor = undefined;
    if (descriptor !== undefined) closeSync(descriptor);
  }

  #append(descriptor: number, line: string): void {
    try {
      this.#target.bytes += writeSync(descriptor, line);
    } catch {
      // A full disk must not end a creation half-way. What is in the file so far stays, and what is printed is not affected.
      this.close();
    }
  }
}
