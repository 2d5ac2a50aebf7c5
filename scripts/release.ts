/**
 * Makes a release: builds every program for every platform, and writes everything that users download to dist/release.
 * Usage: bun run release --url URL --repository URL --signing-key FILE [--output FOLDER]
 *        bun run release --dry-run [--platform NAME]... [--url URL] [--repository URL] [--signing-key FILE] [--output FOLDER]
 *   --url          releases can be downloaded from URL/<tag>/
 *   --repository   URL for cloning the sources
 *   --signing-key  SSH key that signs the checksums
 *   --dry-run      neither commits nor tags
 *   --platform     builds only for this platform, such as linux-x64; for trials
 * Publishes nothing: the last lines say what to push and upload.
 */
import { rmSync } from "node:fs";
import { mkdir, mkdtemp, readdir, rename, rm, stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { programBuild, programs } from "./build.ts";
import { buildLibrary } from "./build-library.ts";
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
      platform: { type: "string", multiple: true },
      output: { type: "string", default: join(root, "dist", "release") },
    },
  });
  const { "signing-key": signingKey, "dry-run": isDryRun } = values;
  const trial = isDryRun ? "https://example.com/cluster-e2e" : undefined;
  const { url = trial, repository = trial } = values;
  if (url === undefined || repository === undefined)
    throw new Error("Pass --url and --repository; they are optional only for a dry run.");
  if (signingKey === undefined && !isDryRun)
    throw new Error("Pass --signing-key; it is optional only for a dry run.");
  const names = platforms.map(({ name }) => name);
  const unknown = values.platform?.find((name) => !names.includes(name));
  if (unknown !== undefined)
    throw new Error(`no such platform: ${unknown} (choose from: ${names.join(", ")})`);
  const chosen = platforms.filter(({ name }) => values.platform?.includes(name) ?? true);
  if (chosen.length < platforms.length && !isDryRun)
    throw new Error("--platform is for dry runs only.");
  const key = signingKey === undefined ? undefined : resolve(signingKey);
  return {
    url: url.endsWith("/") ? url.slice(0, -1) : url,
    repository,
    signingKey: key,
    isDryRun,
    platforms: chosen,
    output: resolve(values.output),
  };
}

/** Builds for each platform. Throws if no platform can be released. */
async function buildAll(
  work: string,
  version: string,
  wanted: readonly Platform[],
): Promise<readonly PlatformBuild[]> {
  const names = await programs();
  const builds: PlatformBuild[] = [];
  for (const platform of wanted) {
    const folder = join(work, platform.name);
    builds.push(
      await buildPlatform(platform, {
        root,
        folder,
        programs: names,
        version,
        build: programBuild,
      }),
    );
  }
  tellFaults(builds);
  if (!builds.some(isFit)) throw new Error("No platform is left to release for.");
  return builds;
}

const isFit = ({ faults }: PlatformBuild): boolean => faults.length === 0;

function tellFaults(builds: readonly PlatformBuild[]): void {
  for (const { platform, faults } of builds) {
    if (faults.length > 0) console.error([`Skipped ${platform.name}:`, ...faults].join("\n  "));
  }
}

async function main(): Promise<void> {
  const started = performance.now();
  const chosen = choices(process.argv.slice(2));
  const { tags, time } = await releasableCheckout(root);
  const tag = nextTag(tags, new Date());
  const { changelog, notes } = cutChangelog(await Bun.file(join(root, "CHANGELOG.md")).text(), tag);
  const builds = await makeFiles(chosen, { tag, time, changelog });
  await tell(chosen.output);
  // Repeated at the end, where it is noticed.
  tellFaults(builds);
  const seconds = ((performance.now() - started) / 1e3).toFixed(0);
  if (chosen.isDryRun)
    return console.log(`${tag}: a dry run of ${seconds} s; nothing was committed or tagged.`);
  const library = await buildLibrary(tag);
  await Bun.write(join(root, "CHANGELOG.md"), changelog);
  await commitAndTag(root, tag, notes, [library]);
  console.log(`${tag} is committed and tagged here, after ${seconds} s. To publish it:
  git push --atomic origin HEAD ${tag}
  upload the files of ${chosen.output} to ${chosen.url}/${tag}/`);
}

/** Fills the chosen folder, or leaves it as it was if anything fails. Returns everything that was built, valid or not. */
async function makeFiles(
  { output, platforms: wanted, repository, signingKey, url: downloadRoot }: Choices,
  cut: { readonly tag: string; readonly time: number; readonly changelog: string },
): Promise<readonly PlatformBuild[]> {
  await mkdir(dirname(output), { recursive: true });
  await using work = await workFolder(dirname(output));
  const builds = await buildAll(work.path, cut.tag, wanted);
  const folder = join(work.path, "files");
  await mkdir(folder);
  const release = { ...cut, root, folder, downloadRoot, repository, signingKey };
  await writeReleaseFiles(release, builds.filter(isFit), await declaredPrograms(root));
  await rm(output, { recursive: true, force: true });
  await rename(folder, output);
  return builds;
}

/** Creates a folder for gigabytes of temporary files. It is removed at the end, also after a signal. */
async function workFolder(parent: string): Promise<AsyncDisposable & { readonly path: string }> {
  const path = await mkdtemp(join(parent, ".release-"));
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.once(signal, () => {
      rmSync(path, { recursive: true, force: true });
      process.kill(process.pid, signal);
    });
  }
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

async function tell(folder: string): Promise<void> {
  for (const name of (await readdir(folder)).toSorted()) {
    console.log(`${String((await stat(join(folder, name))).size).padStart(11)}  ${name}`);
  }
}

await main().catch((error: unknown) => {
  const messages =
    error instanceof Error
      ? [error.message, ...(error.cause instanceof Error ? [error.cause.message] : [])]
      : [error];
  console.error(messages.join("\n"));
  process.exitCode = 1;
});
