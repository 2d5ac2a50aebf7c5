import {
  closeSync,
  constants,
  existsSync,
  fchmodSync,
  lstatSync,
  openSync,
  renameSync,
  writeSync,
} from "node:fs";
import { notRegular } from "../system/files/read-text.ts";
import type { Clock } from "../system/runtime.ts";

/** Limits for the lines that are held in memory until the log file is open. */
const mostEarlyLines = 2000;
const mostEarlyCharacters = 2_000_000;
/**
 * At this size, a file takes no more details (`wait` polls every node every few seconds, for an
 * hour), and the next run begins a new file.
 */
const mostDetailBytes = 20_000_000;
/** The maximum size. The space above `mostDetailBytes` is for what users are shown, such as the final error. */
const mostBytes = 24_000_000;
const appendFlags =
  constants.O_WRONLY |
  constants.O_APPEND |
  constants.O_CREAT |
  constants.O_NOFOLLOW |
  constants.O_NONBLOCK;
const fullNotice = "(This log is full.)\n";

/**
 * Everything that was reported, with time stamps, in a file that only this user can read. It is
 * written synchronously, so that it contains the events that led to a crash or a kill.
 */
export class LogFile {
  readonly #clock: Clock;
  readonly #early: { readonly lines: string[]; characters: number } = { lines: [], characters: 0 };
  readonly #target: { path?: string; descriptor?: number | undefined; bytes: number } = {
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

  /**
   * Creates the file or appends to it, starting with the lines that were written before. A full file is renamed to
   * `….old` first, which replaces an earlier one. Throws the file system's errors, and refuses
   * links, whose targets may be anybody's, and pipes, which would wait for a reader.
   */
  open(path: string): void {
    if (path === this.#target.path) return;
    this.close();
    const found = lstatSync(path, { throwIfNoEntry: false });
    if (found?.isFile() === false) throw notRegular(path);
    const size = found?.size ?? 0;
    const isFull = size >= mostDetailBytes;
    if (isFull) renameSync(path, `${path}.old`);
    const descriptor = openSync(path, appendFlags, 0o600);
    // The file may have existed with another mode.
    fchmodSync(descriptor, 0o600);
    this.#target.path = path;
    this.#target.descriptor = descriptor;
    this.#target.bytes = isFull ? 0 : size;
    for (const line of this.#early.lines.splice(0)) this.#append(descriptor, line);
  }

  /** `text` must already be masked and printable. */
  write(text: string): void {
    const line = `${new Date(this.#clock.now()).toISOString()} ${text.trimEnd().replaceAll(/\n(?! {2})/g, "\n  ")}\n`;
    const { descriptor } = this.#target;
    if (descriptor !== undefined) this.#append(descriptor, line);
    else this.#keep(line);
  }

  close(): void {
    const { descriptor } = this.#target;
    this.#target.descriptor = undefined;
    if (descriptor !== undefined) closeSync(descriptor);
  }

  #keep(line: string): void {
    const { lines } = this.#early;
    lines.push(line);
    this.#early.characters += line.length;
    while (lines.length > mostEarlyLines || this.#early.characters > mostEarlyCharacters)
      this.#early.characters -= lines.shift()?.length ?? this.#early.characters;
  }

  #append(descriptor: number, line: string): void {
    const room = mostBytes - fullNotice.length - this.#target.bytes;
    if (room < 0) return;
    const hasRoom = Buffer.byteLength(line) <= room;
    try {
      this.#target.bytes += writeSync(descriptor, hasRoom ? line : fullNotice);
      if (!hasRoom) this.#target.bytes = mostBytes;
    } catch {
      // A full disk must not end a creation half-way. The file keeps its contents so far, and
      // terminal output is not affected.
      this.close();
    }
  }
}
