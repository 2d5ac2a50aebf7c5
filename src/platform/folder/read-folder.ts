import { lstat } from "node:fs/promises";
import { join } from "node:path";
import { quoted } from "../../errors.ts";
import { type Checked, problem } from "../../model/checked.ts";
import { type ListedFile, listFiles } from "../../system/files/list-files.ts";
import { type FileFacts, readListed } from "../../system/files/listed-file.ts";
import { errorCode, folderProblem } from "../../system/files/private-file.ts";
import { type PlatformFacts, mostFileBytes, parsePlatformFile } from "./platform-file.ts";

export interface PlatformFolder {
  readonly facts: PlatformFacts;
  /** Sorted by path. */
  readonly files: readonly PlatformFolderFile[];
}

export interface PlatformFolderFile {
  /** Relative to the folder, with `/`. */
  readonly path: string;
  /** 0o644, or 0o755 for a file with a run bit. */
  readonly mode: number;
  readonly sizeBytes: number;
  readonly source: { readonly file: FileFacts } | { readonly text: string };
}

const mostFiles = 10_000;
/** How many names with control characters are reported. */
const mostNames = 20;
const mostBytes = 1_000_000_000;
/** The metadata of version control and of desktops: it changes while the platform stays the same. */
const skipped: ReadonlySet<string> = new Set([".git", ".DS_Store"]);

/**
 * Reads and checks a folder on disk. Reports all problems at once. `folder` is absolute. Empty
 * folders are left out.
 */
export async function readPlatformFolder(
  folder: string,
  signal: AbortSignal,
): Promise<Checked<PlatformFolder>> {
  const unusable = await folderProblem(folder);
  if (unusable !== undefined) return problem(unusable);
  const listed = await listFiles(folder, { isSkipped: (name) => skipped.has(name) }, signal);
  if (listed.problems !== undefined) {
    const facts = await lstat(join(folder, "platform.yaml")).catch(() => undefined);
    // Another folder was meant: what is wrong with the files of this one doesn't matter.
    return facts === undefined ? problem(`${folder}/platform.yaml: is missing`) : listed;
  }
  return checkFolder(folder, listed.value.map(fileOnDisk));
}

/** A folder in memory, such as an embedded example. `shown` is its name in problems. */
export const platformFolderOf = (
  shown: string,
  files: readonly { readonly path: string; readonly mode: number; readonly text: string }[],
): Promise<Checked<PlatformFolder>> =>
  checkFolder(
    shown,
    files
      .map(({ path, mode, text }) => ({
        path,
        mode: packedMode(mode),
        sizeBytes: Buffer.byteLength(text),
        source: { text },
      }))
      .toSorted((one, other) => (one.path < other.path ? -1 : 1)),
  );

const fileOnDisk = (file: ListedFile): PlatformFolderFile => ({
  path: file.path,
  mode: packedMode(file.mode),
  sizeBytes: file.sizeBytes,
  source: { file },
});

/** Other bits depend on the user's umask. */
const packedMode = (mode: number): number => ((mode & 0o111) === 0 ? 0o644 : 0o755);

async function checkFolder(
  shown: string,
  files: readonly PlatformFolderFile[],
): Promise<Checked<PlatformFolder>> {
  const byPath = new Map(files.map((file) => [file.path, file]));
  const facts = await readFactsFile(shown, byPath);
  const problems = [
    ...(facts.problems ?? []),
    ...sizeProblems(shown, files),
    ...files
      .filter(({ path }) => /\p{Cc}/u.test(path))
      .slice(0, mostNames)
      .map(({ path }) => `${shown}: the name ${quoted(path)} has control characters`),
    ...(byPath.has("tests") ? [`${shown}/tests: is not a folder`] : []),
  ];
  for (const name of programs) {
    const file = byPath.get(name);
    const found = file === undefined ? absence(name, files) : await programProblem(file);
    if (found !== undefined) problems.push(`${shown}/${name}: ${found}`);
  }
  if (facts.problems !== undefined || problems.length > 0) return { problems };
  return { value: { facts: facts.value, files } };
}

const programs = ["install", "check", "upgrade", "watch"] as const;

export const hasUpgrade = (files: readonly Pick<PlatformFolderFile, "path">[]): boolean =>
  files.some(({ path }) => path === "upgrade");

function absence(
  name: (typeof programs)[number],
  files: readonly PlatformFolderFile[],
): string | undefined {
  if (files.some(({ path }) => path.startsWith(`${name}/`))) return "is a folder, not a program";
  return name === "upgrade" || name === "watch" ? undefined : "is missing";
}

function sizeProblems(shown: string, files: readonly PlatformFolderFile[]): readonly string[] {
  const bytes = files.reduce((sum, file) => sum + file.sizeBytes, 0);
  return [
    ...(files.length > mostFiles
      ? [`${shown}: has ${files.length} files; at most ${mostFiles} are allowed`]
      : []),
    ...(bytes > mostBytes
      ? [`${shown}: has ${(bytes / 1e9).toFixed(2)} GB; at most ${mostBytes / 1e9} GB is allowed`]
      : []),
  ];
}

async function readFactsFile(
  shown: string,
  byPath: ReadonlyMap<string, PlatformFolderFile>,
): Promise<Checked<PlatformFacts>> {
  const path = `${shown}/platform.yaml`;
  const file = byPath.get("platform.yaml");
  if (file === undefined)
    return problem(
      `${path}: is missing${byPath.has("platform.yml") ? "; rename platform.yml" : ""}`,
    );
  const bytes = await readStart(file, mostFileBytes + 1);
  if (bytes.length > mostFileBytes)
    return problem(`${path}: is larger than ${mostFileBytes / 1024} KiB`);
  try {
    return await parsePlatformFile(new TextDecoder("utf-8", { fatal: true }).decode(bytes), path);
  } catch (error) {
    if (errorCode(error) !== "ERR_ENCODING_INVALID_ENCODED_DATA") throw error;
    return problem(`${path}: is not UTF-8 text`);
  }
}

const searchedBytes = 1024;
const elf = Buffer.from("\x7fELF", "latin1");

/** Returns why nodes couldn't run a file; undefined if this machine finds no reason. */
async function programProblem(file: PlatformFolderFile): Promise<string | undefined> {
  if (file.sizeBytes === 0) return "is empty";
  if (file.mode !== 0o755) return "is not executable; run chmod +x on it";
  const start = await readStart(file, searchedBytes);
  if (start.subarray(0, elf.length).equals(elf)) return undefined;
  if (start.toString("latin1", 0, 2) !== "#!")
    return "is not a program: it begins neither with #! nor as Linux executables do";
  // Behind its first lines, a script may carry an archive.
  const [line = ""] = start.toString("latin1").split("\n", 1);
  if (line.endsWith("\r"))
    return "has Windows line endings (CRLF); save it with Unix line endings (LF)";
  return /^#![ \t]*\//.test(line)
    ? undefined
    : "begins with #!, but without the path of a program that runs it, such as #!/bin/sh";
}

async function readStart({ source }: PlatformFolderFile, most: number): Promise<Buffer> {
  if ("text" in source) return Buffer.from(source.text).subarray(0, most);
  // Leaving the loop closes the file.
  for await (const chunk of readListed(source.file)) return Buffer.from(chunk).subarray(0, most);
  return Buffer.alloc(0);
}
