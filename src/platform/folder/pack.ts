import { createHash } from "node:crypto";
import { type FileHandle, open, realpath, rename, stat } from "node:fs/promises";
import { dirname, sep } from "node:path";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import { ClusterError, revised } from "../../errors.ts";
import { shellText, withoutHeader } from "../../ssh/shell-text.ts";
import { sha256OfFile } from "../../system/files/byte-source.ts";
import { readListed } from "../../system/files/listed-file.ts";
import { cannotWrite, draftBeside } from "../../system/files/draft.ts";
import { isFileOrAbsent, writeAll } from "../../system/files/private-file.ts";
import { type TarFile, tarStream, textFile } from "../../system/files/tar.ts";
import { unicodeEscape } from "../../system/printable.ts";
import artifactFile from "./artifact.sh" with { type: "text" };
import checkFile from "./check-node.sh" with { type: "text" };
import genconfFile from "./genconf.py" with { type: "text" };
import installFile from "./install.sh" with { type: "text" };
import { type PlatformFacts, asciiJson, platformHead, upgradeLine } from "./platform-file.ts";
import { type PlatformFolder, type PlatformFolderFile, hasUpgrade } from "./read-folder.ts";

/**
 * Writes the artifact where the user wants it. Throws `bad-usage` if it can't be written, or would
 * be in the folder.
 */
export async function packFolder(
  {
    folder,
    platform,
    file,
  }: { readonly folder: string; readonly platform: PlatformFolder; readonly file: string },
  signal: AbortSignal,
) {
  const [root, parent] = await Promise.all([
    realpath(folder),
    realpath(dirname(file)).catch(() => dirname(file)),
  ]);
  if (parent === root || parent.startsWith(root + sep)) {
    throw new ClusterError(
      "bad-usage",
      `Cannot write ${file}: it would become a part of the platform in ${folder}.`,
      {
        hint: "Pass a file outside of that folder.",
      },
    );
  }
  try {
    if (!(await isFileOrAbsent(file))) throw cannotWrite(file, "it is not a regular file");
    await writeArtifact(platform, file, signal);
  } catch (error) {
    signal.throwIfAborted();
    throw error instanceof ClusterError ? error : cannotWrite(file, error);
  }
  return { sizeBytes: (await stat(file)).size, sha256: await sha256OfFile(file, signal) };
}

/**
 * Writes the folder as one self-contained artifact: a script, followed by the files as a compressed
 * archive. The same folder gives the same bytes, whatever its times and owners are. Replaces a file
 * only when the new one is complete. Throws `transfer-failed` if a file changes meanwhile, and the
 * system's error if the artifact can't be written.
 */
export async function writeArtifact(
  platform: PlatformFolder,
  file: string,
  signal: AbortSignal,
): Promise<void> {
  try {
    await using draft = await draftBeside(file);
    await writeDraft(platform, draft.path, signal);
    await rename(draft.path, file);
  } catch (error) {
    signal.throwIfAborted();
    // Another try would use the same list of files.
    throw error instanceof ClusterError ? revised(error, {}) : error;
  }
}

/** The sum of the archive stands in front of the archive, so it is filled in at the end. */
const noSum = "0".repeat(64);

async function writeDraft(
  { facts, files }: PlatformFolder,
  draft: string,
  signal: AbortSignal,
): Promise<void> {
  await using output = await open(draft, "wx", 0o666);
  const script = Buffer.from(artifactScript(facts, hasUpgrade(files)));
  await writeAll(output, script);
  const sum = await writeArchive(files, output, signal);
  // The line with the facts, which is in front of it, may hold the same digits.
  const sumOffset = script.indexOf(`\nSUM=${noSum}`) + "\nSUM=".length;
  await output.write(Buffer.from(sum), 0, sum.length, sumOffset);
}

/** Everything in front of the archive. */
function artifactScript(facts: PlatformFacts, isUpgrade: boolean): string {
  const lines = ["#!/bin/bash", "# variant: none", `# platform: ${platformHead(facts)}`];
  const head = [...lines, ...(isUpgrade ? [upgradeLine] : []), ""].join("\n");
  const values = {
    SUM: noSum,
    VERSION_JSON: versionJson(facts),
    PLATFORM_JSON: platformHead(facts),
    GENCONF_TEXT: withoutHeader(genconfFile),
    INSTALL_TEXT: withoutHeader(installFile),
    CHECK_TEXT: withoutHeader(checkFile),
  };
  const script = (firstLine: number): string =>
    head + shellText(artifactFile, { ...values, FIRST_LINE: firstLine }) + endMark;
  return script(script(0).split("\n").length);
}

/** Explains the bytes behind the script to people who open the artifact in an editor. */
const endMark = "# The files follow as a gzipped tar archive.\n";

/** Escapes braces in the version, because the readers of `--version` look for them. */
const versionJson = ({ name, version }: PlatformFacts): string =>
  asciiJson({ variant: "none", version: "", name }).replace('""', () =>
    asciiJson(version).replace(/[{}]/g, unicodeEscape),
  );

/** Returns the SHA-256 of what it writes, in hexadecimal. */
async function writeArchive(
  files: readonly PlatformFolderFile[],
  output: FileHandle,
  signal: AbortSignal,
): Promise<string> {
  const hash = createHash("sha256");
  let written = 0;
  await pipeline(
    tarStream(files.map(archived)),
    createGzip(),
    async (chunks: AsyncIterable<Buffer>) => {
      for await (const chunk of chunks) {
        if (written <= systemByte && systemByte < written + chunk.length)
          chunk[systemByte - written] = unknownSystem;
        hash.update(chunk);
        await writeAll(output, chunk);
        written += chunk.length;
      }
    },
    { signal },
  );
  return hash.digest("hex");
}

/** The byte of a gzip header that names the system on which it was written (RFC 1952). */
const systemByte = 9;
const unknownSystem = 255;

const archived = ({ path: name, mode, sizeBytes, source }: PlatformFolderFile): TarFile =>
  "text" in source
    ? textFile({ name, mode, modifiedMs: 0, text: source.text })
    : { name, mode, modifiedMs: 0, sizeBytes, contents: () => readListed(source.file) };

export function notPackable(problems: readonly string[]): ClusterError {
  const [first = "", ...others] = problems;
  const message =
    others.length === 0
      ? first
      : `${problems.length} problems:${problems.map((each) => `\n  ${each}`).join("")}`;
  return new ClusterError("bad-usage", message, {
    hint: "FOLDER must have platform.yaml, and the programs install and check.",
    facts: { problems },
  });
}

/** Returns the artifact's default file name. Replaces characters of the version that no file name should have. */
export const defaultName = ({ facts: { name, version } }: PlatformFolder): string =>
  `${name}-${version.replaceAll(/[^A-Za-z0-9._+~-]/g, "_")}.sh`;
