import { constants, open } from "node:fs/promises";
import { OwnError, systemReason } from "../../errors.ts";
import type { Reader } from "../../model/reader.ts";
import { readStdin } from "./read-stdin.ts";
import { orAborted } from "../time-limit.ts";
import { utf8Text } from "../utf8.ts";
import { errorCode } from "./private-file.ts";

/** Larger files are none that this program or its users write for it. */
const mostOwnBytes = 16 * 1024 * 1024;
const chunkBytes = 64 * 1024;

/**
 * A file or an answer that is longer than anything that could be meant. Its code is the system's
 * own for such files.
 */
export class TooLong extends Error {
  override readonly name = "TooLong";
  readonly code = "EFBIG";

  constructor(mostBytes: number) {
    super(`it has more than ${mostBytes} bytes`);
  }
}

const reasons: Readonly<Record<string, string>> = {
  ENOENT: "the file does not exist",
  ENOTDIR: "the file does not exist",
  EISDIR: "it is a folder, not a file",
  EACCES: "this user may not read it",
  // Of `notRegular`.
  EINVAL: "it is not a regular file",
};

/** Why a file that the user names can't be read, as the end of a sentence without a full stop. */
export function unreadableReason(error: unknown): string {
  return reasons[errorCode(error) ?? ""] ?? systemReason(error);
}

/**
 * Reads a file that the user names, which may also be a pipe. Throws `TooLong`, the system's error,
 * or the signal's reason.
 */
export async function readBytes(
  path: string,
  mostBytes: number,
  signal: AbortSignal,
): Promise<Buffer> {
  signal.throwIfAborted();
  const opening = open(path);
  try {
    return await readAtMost(await orAborted(opening, signal), mostBytes, signal);
  } finally {
    // Without waiting: nobody knows when a pipe that has been given up is opened, or answers the last read.
    opening.then((file) => file.close()).catch(() => {});
  }
}

/** Likewise, for a text. Also rejects if its bytes aren't UTF-8. */
export async function readText(
  path: string,
  mostBytes: number,
  signal: AbortSignal,
): Promise<string> {
  return textOf(await readBytes(path, mostBytes, signal));
}

/** Likewise, for a text on stdin. */
export async function readStdinText(mostBytes: number, signal: AbortSignal): Promise<string> {
  const read = async (buffer: Buffer) => ({ bytesRead: await readStdin(buffer, signal) });
  return textOf(await readAtMost({ read }, mostBytes, signal));
}

function textOf(bytes: Buffer): string {
  const text = utf8Text(bytes);
  if (text === undefined) throw new OwnError("some of its bytes are not UTF-8");
  return text;
}

/**
 * Reads one of this program's own files, or the system's. It takes no signal because it never
 * waits: it refuses anything but a regular file. Throws like `readText`.
 */
export async function readOwnText(path: string): Promise<string> {
  await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const information = await file.stat();
  if (!information.isFile()) throw notRegular(path, information.isDirectory());
  return (await readAtMost(file, mostOwnBytes, new AbortController().signal)).toString("utf8");
}

/** Like `readOwnText`; undefined if nothing exists there. */
export async function readOwnTextIfThere(path: string): Promise<string | undefined> {
  try {
    return await readOwnText(path);
  } catch (error) {
    if (errorCode(error) === "ENOENT") return undefined;
    throw error;
  }
}

/**
 * Returns the end of a regular file, from a line's beginning on; an empty text if it can't be read.
 * `noLinks`: for a name that was found in a folder which others may write to, where a link would
 * lead to any file of this user.
 */
export async function readTail(
  path: string,
  mostBytes: number,
  { noLinks = false } = {},
): Promise<string> {
  try {
    const flags = constants.O_RDONLY | constants.O_NONBLOCK | (noLinks ? constants.O_NOFOLLOW : 0);
    await using file = await open(path, flags);
    const information = await file.stat();
    if (!information.isFile() || (noLinks && information.nlink > 1)) return "";
    const from = Math.max(0, information.size - mostBytes);
    const length = Math.min(mostBytes, information.size);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, from);
    const text = buffer.toString("utf8", 0, bytesRead);
    return from === 0 ? text : text.slice(text.indexOf("\n") + 1);
  } catch {
    return "";
  }
}

/** Returns what the system would throw if it refused to read anything but files. */
export function notRegular(path: string, isFolder = false): Error {
  const code = isFolder ? "EISDIR" : "EINVAL";
  return Object.assign(new Error(`${code}: ${path} is not a regular file`), { code });
}

/** Reads the JSON in such a file. Undefined if the file is missing or unreadable, or if its value has another shape. */
export async function readOwnJson<Value>(
  path: string,
  reader: Reader<Value>,
): Promise<Value | undefined> {
  const text = await readOwnText(path).catch(() => undefined);
  return text === undefined ? undefined : reader(parseJson(text));
}

async function readAtMost(
  file: {
    read(buffer: Buffer, offset: number, length: number): Promise<{ readonly bytesRead: number }>;
  },
  mostBytes: number,
  signal: AbortSignal,
): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for (let bytes = 0; bytes <= mostBytes;) {
    const chunk = Buffer.allocUnsafe(chunkBytes);
    const { bytesRead } = await orAborted(file.read(chunk, 0, chunkBytes), signal);
    if (bytesRead === 0) return Buffer.concat(chunks);
    chunks.push(chunk.subarray(0, bytesRead));
    bytes += bytesRead;
  }
  throw new TooLong(mostBytes);
}

/** Reads the body of an answer from the web, as long as the request's own signal allows. Throws `TooLong`. */
export async function readBody(response: Response, mostBytes: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  const body: AsyncIterable<Uint8Array> = response.body ?? (async function* () {})();
  // Leaving the loop ends the transfer.
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > mostBytes) throw new TooLong(mostBytes);
    chunks.push(chunk);
  }
  return new TextDecoder().decode(Buffer.concat(chunks));
}

/**
 * Nothing that this program reads has a tenth of it. Functions that follow such a value call
 * themselves at each level.
 */
const mostLevels = 100;

/**
 * Returns the value of a JSON text from outside; undefined if it isn't JSON, or is nested more than
 * 100 levels deep.
 */
export function parseJson(text: string): unknown {
  if (isTooDeep(text)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isTooDeep(text: string): boolean {
  let [levels, isInString] = [0, false];
  for (let position = 0; position < text.length; position += 1) {
    const character = text[position];
    if (character === '"') isInString = !isInString;
    else if (isInString) position += character === "\\" ? 1 : 0;
    else if (character === "[" || character === "{") levels += 1;
    else if (character === "]" || character === "}") levels -= 1;
    if (levels > mostLevels) return true;
  }
  return false;
}
