/**
 * Makes a release: builds every program for every platform, and puts what people download into dist/release.
 * Usage: bun run release [--dry-run [--quick] [--platform NAME]...] --url URL --repository URL [--signing-key FILE] [--output FOLDER]
 *   --url          releases can be downloaded from URL/<tag>/
 *   --repository   where the sources are cloned from
 *   --signing-key  an SSH key, to sign the checksums with; only a dry run goes without
 *   --dry-run      commits and tags nothing
 *   --quick        compresses lightly; for trying out
 *   --platform     builds for this one only, such as linux-x64; for trying out
 * It publishes nothing: at its end it says what to push and to upload.
 */
import { mkdir, mkdtemp, readdir, rename, rm, stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { programs } from "./build.ts";
import { cutChangelog } from "./release/changelog.ts";
import { commitAndTag, releasableCheckout } from "./release/checkout.ts";
import { declaredPrograms } from "./release/declarations.ts";
import type { PlatformBuild } from "./release/executables.ts";
import { buildPlatform } from "./release/executables.ts";
import { writeReleaseFiles } from "./release/files.ts";
import type { Platform } from "./release/platforms.ts";
import { platforms } from "./release/platforms.ts";
import { nextTag } from "./release/version-tag.ts";

const root = join(import.meta.dir, "..");

interface Choices {
  readonly url: string;
  readonly repository: string;
  readonly signingKey: string | undefined;
  readonly isDryRun: boolean;
  readonly isQuick: boolean;
  readonly platforms: readonly Platform[];
  readonly output: string;
}

function choices(argv: readonly string[]): Choices {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      url: { type: "string" },
      repository: { type: "string" },
      "signing-key": { type: "string" },
      "dry-run": { type: "boolean", default: false },
      quick: { type: "boolean", default: false },
      platform: { type: "string", multiple: true },
      output: { type: "string", default: join(root, "dist", "release") },
    },
  });
  const { url, repository, "signing-key": signingKey, "dry-run": isDryRun, quick: isQuick } = values;
  if (url === undefined || repository === undefined) throw new Error("Give --url and --repository.");
  if (signingKey === undefined && !isDryRun) throw new Error("Give --signing-key: only a dry run goes without.");
  const chosen = platforms.filter(({ name }) => values.platform?.includes(name) ?? true);
  if ((isQuick || chosen.length < platforms.length) && !isDryRun) {
    throw new Error("--quick and --platform are for dry runs only.");
  }
  const key = signingKey === undefined ? undefined : resolve(signingKey);
  return {
    url: url.replace(/\/+$/, ""),
    repository,
    signingKey: key,
    isDryRun,
    isQuick,
    platforms: chosen,
    output: resolve(values.output),
  };
}

/** Builds for each platform; what may not be released is said, and left out. */
async function buildAll(work: string, version: string, wanted: readonly Platform[]): Promise<readonly PlatformBuild[]> {
  const names = await programs();
  const fit: PlatformBuild[] = [];
  for (const platform of wanted) {
    const folder = join(work, platform.name);
    const build = await buildPlatform(platform, { root, folder, programs: names, version });
    if (build.faults.length === 0) fit.push(build);
    else console.error([`Nothing is released for ${platform.name}:`, ...build.faults].join("\n  "));
  }
  if (fit.length === 0) throw new Error("There is no platform that anything could be released for.");
  return fit;
}

async function main(): Promise<void> {
  const started = performance.now();
  const chosen = choices(process.argv.slice(2));
  const { tags, time } = await releasableCheckout(root);
  const tag = nextTag(tags, new Date());
  const { changelog, notes } = cutChangelog(await Bun.file(join(root, "CHANGELOG.md")).text(), tag);
  await mkdir(dirname(chosen.output), { recursive: true });
  const work = await mkdtemp(join(dirname(chosen.output), ".release-"));
  try {
    const folder = join(work, "files");
    await mkdir(folder);
    const builds = await buildAll(work, tag, chosen.platforms);
    const { repository, signingKey, url: downloadRoot } = chosen;
    const compressionLevel = chosen.isQuick ? 0 : 6;
    const release = { root, folder, tag, time, downloadRoot, repository, signingKey, changelog, compressionLevel };
    await writeReleaseFiles(release, builds, await declaredPrograms(root));
    await rm(chosen.output, { recursive: true, force: true });
    await rename(folder, chosen.output);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
  await tell(chosen.output);
  const seconds = ((performance.now() - started) / 1e3).toFixed(0);
  if (chosen.isDryRun) return console.log(`${tag}: a dry run of ${seconds} s; nothing was committed or tagged.`);
  await Bun.write(join(root, "CHANGELOG.md"), changelog);
  await commitAndTag(root, tag, notes);
  console.log(`${tag} is committed and tagged here, after ${seconds} s. To publish it:
  git push --follow-tags
  upload the files of ${chosen.output} to ${chosen.url}/${tag}/`);
}

async function tell(folder: string): Promise<void> {
  for (const name of (await readdir(folder)).toSorted()) {
    console.log(`${String((await stat(join(folder, name))).size).padStart(11)}  ${name}`);
  }
}

await main().catch((error: unknown) => {
  const messages =
    error instanceof Error ? [error.message, ...(error.cause instanceof Error ? [error.cause.message] : [])] : [error];
  console.error(messages.join("\n"));
  process.exitCode = 1;
});
