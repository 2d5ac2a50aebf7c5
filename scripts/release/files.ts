/** The files of a release. */

import { copyFile, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Program } from "../../src/cli/command.ts";
import { sha256OfFile } from "../../src/system/files/byte-source.ts";
import { type Entry, writeTarGz, writeTarXz } from "./archive.ts";
import { billOfMaterials } from "./components.ts";
import { documents, sharedDocuments } from "./documents.ts";
import type { PlatformBuild } from "./executables.ts";
import { formula } from "./formula.ts";
import { installer } from "./installer.ts";
import { allowedSigner, publicKey, signSums } from "./signature.ts";

export interface Release {
  readonly root: string;
  /** Where the files are written to. */
  readonly folder: string;
  readonly tag: string;
  /** Milliseconds since 1970 that stand in archives, manual pages and the bill of materials. */
  readonly time: number;
  /** Releases can be downloaded from `<downloadRoot>/<tag>/`. */
  readonly downloadRoot: string;
  readonly repository: string;
  /** A private key's file; undefined where the release is not signed. */
  readonly signingKey: string | undefined;
  readonly changelog: string;
}

/** Writes all of them. What is in `builds` is fit to be released. */
export async function writeReleaseFiles(
  release: Release,
  builds: readonly PlatformBuild[],
  programs: readonly Program[],
): Promise<void> {
  const { root, folder, tag, time } = release;
  const date = new Date(time).toISOString().slice(0, 10);
  const shared = [
    ...programs.flatMap((program) => documents(program, { version: tag, date })),
    ...sharedDocuments(root),
  ];
  await writeTarGz(join(folder, `cluster-e2e-${tag}-share.tar.gz`), shared, time);
  // At most two at once: each takes a core, and memory for its dictionary.
  const waiting = [...builds];
  const work = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift())
      await writePlatform(release, next, shared);
  };
  await Promise.all([work(), work()]);
  const inputs = new Set(
    builds.flatMap(({ executables }) => executables.flatMap((each) => each.inputs)),
  );
  const bill = { tag, time, inputs, platforms: builds.map(({ platform }) => platform) };
  await Bun.write(join(folder, `cluster-e2e-${tag}.cdx.json`), await billOfMaterials(root, bill));
  await Bun.write(join(folder, "cluster-e2e.rb"), await formulaText(release, builds, programs));
  await Bun.write(join(folder, "CHANGELOG.md"), release.changelog);
  const signer = release.signingKey === undefined ? undefined : await publicKey(release.signingKey);
  if (signer !== undefined) await Bun.write(join(folder, "allowed_signers"), allowedSigner(signer));
  const template = await Bun.file(join(root, "scripts", "install.sh")).text();
  const sums = await sumsOf(folder, (await readdir(folder)).toSorted());
  const facts = { release: tag, downloadRoot: release.downloadRoot, signer, sums: sums.join("\n") };
  await writeFile(join(folder, "install.sh"), installer(template, facts), { mode: 0o755 });
  const lines = [...sums, ...(await sumsOf(folder, ["install.sh"]))];
  await Bun.write(join(folder, "SHA256SUMS"), lines.map((line) => `${line}\n`).join(""));
  if (release.signingKey !== undefined) await signSums(folder, release.signingKey);
}

const archiveName = (release: Release, { platform }: PlatformBuild): string =>
  `cluster-e2e-${release.tag}-${platform.name}`;

/** The raw executables, and one archive with all of them and what comes along. */
async function writePlatform(
  release: Release,
  build: PlatformBuild,
  shared: readonly Entry[],
): Promise<void> {
  const name = archiveName(release, build);
  const programs = build.executables.map(({ program, path }) => ({
    name: `bin/${program}`,
    from: { path },
    mode: 0o755,
  }));
  const entries = [...programs, ...shared].map((entry) => ({
    ...entry,
    name: `${name}/${entry.name}`,
  }));
  await writeTarXz(join(release.folder, `${name}.tar.xz`), entries, release.time);
  for (const { program, path } of build.executables) {
    await copyFile(path, join(release.folder, `${program}-${build.platform.name}`));
  }
}

async function formulaText(
  release: Release,
  builds: readonly PlatformBuild[],
  programs: readonly Program[],
): Promise<string> {
  const archives = await Promise.all(
    builds.map(async (build) => {
      const file = `${archiveName(release, build)}.tar.xz`;
      const url = `${release.downloadRoot}/${release.tag}/${file}`;
      return { platform: build.platform, url, sha256: await sha256(join(release.folder, file)) };
    }),
  );
  const { description } = (await Bun.file(join(release.root, "package.json")).json()) as {
    readonly description: string;
  };
  const names = programs.map(({ name }) => name);
  return formula({
    tag: release.tag,
    description,
    repository: release.repository,
    archives,
    programs: names,
  });
}

/** Lines of `SHA256SUMS`, as `sha256sum --check` reads them. */
const sumsOf = async (folder: string, names: readonly string[]): Promise<readonly string[]> =>
  Promise.all(names.map(async (name) => `${await sha256(join(folder, name))}  ${name}`));

const sha256 = (path: string): Promise<string> => sha256OfFile(path, AbortSignal.timeout(60_000));
