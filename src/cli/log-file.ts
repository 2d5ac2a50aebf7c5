import { closeSync, existsSync, fchmodSync, openSync, writeSync } from "node:fs";
import type { Clock } from "../system/runtime.ts";

/** The number of early lines kept until the location of the log file is known. */
const keptLines = 2000;
/** The limit for the details that one run writes: `wait` polls every node every few seconds, for an hour. */
const mostDetailBytes = 20_000_000;

/**
 * Everything that users were told, with time stamps, in a file that only this user can read. It is written synchronously, so that it contains the
 * events that led to a crash or a kill.
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

  /** The path of the log. Absent until it has a file, and after that file was removed with its folder. */
  get path(): string | undefined {
    const { path } = this.#target;
    return path !== undefined && existsSync(path) ? path : undefined;
  }

  /** Whether there is room for details that are not shown to users. */
  get takesDetails(): boolean {
    return this.#target.bytes < mostDetailBytes;
  }

  /** Creates the file or appends to it, starting with the lines kept so far. Throws the file system's errors. */
  open(path: string): void {
    if (path === this.#target.path) return;
    this.close();
    const descriptor = openSync(path, "a", 0o600);
    // The file may have existed with another mode.
    fchmodSync(descriptor, 0o600);
    this.#target.path = path;
    this.#target.descriptor = descriptor;
    for (const line of this.#early.splice(0)) writeSync(descriptor, line);
  }

  /** `text` must already be masked and printable. */
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
      // A full disk must not end a creation half-way. The file keeps its contents so far, and terminal output is not affected.
      this.close();
    }
  }
}
