/** The licenses of everything that is part of the executables, as one text. */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { packageFolders } from "./components.ts";

interface Package {
  readonly name: string;
  readonly version: string;
  /** An SPDX expression. */
  readonly license: string;
  /** Undefined where the package comes without one. */
  readonly text: string | undefined;
}

const licenseFile = /^(?:licen[cs]e|copying|notice|copyrightnotice)(?:\.\w+)?$/i;

/**
 * The text for these files, which went into the executables. Throws where nothing tells a package's license. What Bun is made of is taken
 * from its own documentation, which comes with its types, of the same version.
 */
export async function thirdPartyNotices(root: string, inputs: Iterable<string>): Promise<string> {
  const packages = withTexts(
    await Promise.all(packageFolders(inputs).map((folder) => readPackage(join(root, folder)))),
  );
  const texts = [...new Set(packages.map(({ text }) => text))];
  const listed = packages.map(({ name, version, license, text }) =>
    `${entryOf({ name, version })}${license}, text ${texts.indexOf(text) + 1}`.trimEnd(),
  );
  const lesser = await Bun.file(join(import.meta.dir, "lgpl-2.1.txt")).text();
  return [
    "Licenses of cluster-e2e's programs",
    "cluster-e2e itself is licensed under the Apache License 2.0; its text is that of @aws-sdk/client-ec2 below. Its programs contain the packages\nthat follow, and Bun.",
    heading("Packages"),
    listed.join("\n"),
    heading(`Bun ${Bun.version}`),
    await bunLicenses(root),
    "Bun's distribution names these licenses without their texts, which the links lead to. That of the LGPL stands at the end. To relink a program\nwith a changed library, build Bun as described above, then this program from its sources with that Bun (scripts/build.ts).",
    ...texts.flatMap((text, index) => [heading(`Text ${index + 1}`), text]),
    heading("GNU Lesser General Public License 2.1"),
    lesser.trim(),
    "",
  ]
    .join("\n\n")
    .trimEnd()
    .concat("\n");
}

/** How a package's line begins. */
const entryOf = ({ name, version }: Pick<Package, "name" | "version">): string =>
  `${`${name} ${version}`.padEnd(52)}  `;

/** The packages, as `name version`, that these files belong to and that the text has no line for. */
export async function missingFrom(
  text: string,
  root: string,
  inputs: Iterable<string>,
): Promise<readonly string[]> {
  const lines = text.split("\n");
  const packages = await Promise.all(
    packageFolders(inputs).map((folder) => readPackageFile(join(root, folder))),
  );
  return packages
    .filter((each) => !lines.some((line) => line.startsWith(entryOf(each))))
    .map(({ name, version }) => `${name} ${version}`);
}

const heading = (title: string): string =>
  `${"=".repeat(title.length)}\n${title}\n${"=".repeat(title.length)}`;

interface PackageFile {
  readonly name: string;
  readonly version: string;
  readonly license?: string;
  /** As npm had it long ago. */
  readonly licenses?: readonly { readonly type: string }[];
}

const readPackageFile = async (folder: string): Promise<PackageFile> =>
  (await Bun.file(join(folder, "package.json")).json()) as PackageFile;

async function readPackage(folder: string): Promise<Package> {
  const { name, version, license, licenses } = await readPackageFile(folder);
  const expression = license ?? licenses?.map(({ type }) => type).join(" OR ");
  if (expression === undefined) throw new Error(`${name} ${version} does not name its license`);
  const files = (await readdir(folder)).filter((file) => licenseFile.test(file)).toSorted();
  const texts = await Promise.all(files.map((file) => Bun.file(join(folder, file)).text()));
  const text = texts
    .map((each) =>
      each
        .replaceAll("\r", "")
        .split("\n")
        .map((line) => line.trimEnd())
        .join("\n")
        .trim(),
    )
    .join("\n\n");
  return { name, version, license: expression, text: text === "" ? undefined : text };
}

/** A package without a text gets that of another one under the same license and of the same owner. */
function withTexts(packages: readonly Package[]): readonly (Package & { readonly text: string })[] {
  return packages.map((each) => {
    const owner = each.name.split("/")[0];
    const other = packages.find(
      ({ name, license, text }) =>
        name.startsWith(`${owner}/`) && license === each.license && text !== undefined,
    );
    const text = each.text ?? other?.text;
    if (text === undefined)
      throw new Error(`${each.name} ${each.version} comes without the text of its license`);
    return { ...each, text };
  });
}

async function bunLicenses(root: string): Promise<string> {
  const types = await readPackageFile(join(root, "node_modules", "bun-types"));
  if (types.version !== Bun.version)
    throw new Error(`bun-types ${types.version} does not describe Bun ${Bun.version}`);
  const page = await Bun.file(join(root, "node_modules/bun-types/docs/project/license.mdx")).text();
  return page
    .replace(/^---\n.*?\n---\n/s, "")
    .replaceAll(/ {2,}/g, " ")
    .replaceAll(/-{4,}/g, "---")
    .trim();
}
