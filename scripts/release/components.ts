/** What the executables are made of, as a CycloneDX bill of materials. Format: https://cyclonedx.org/docs/1.6/json/ */
import { join } from "node:path";
import type { Platform } from "./platforms.ts";

/** Name and version of a package, what it may be used under, and the checksum that bun.lock pins it to. */
interface Component {
  readonly name: string;
  readonly version: string;
  readonly license: string | undefined;
  readonly sha512: string | undefined;
}

interface Bill {
  readonly tag: string;
  /** Milliseconds since 1970: that of the release's commit, so that the same sources give the same bill. */
  readonly time: number;
  /** Files that went into the executables, from the repository's top. */
  readonly inputs: ReadonlySet<string>;
  readonly platforms: readonly Platform[];
}

/** Names of the packages that the files belong to, in order. */
export function packagesOf(inputs: Iterable<string>): readonly string[] {
  return [
    ...new Set(
      packageFolders(inputs).map((folder) => folder.split("node_modules/").at(-1) ?? folder),
    ),
  ].toSorted();
}

/** Their folders: one package may be there in several versions. */
export function packageFolders(inputs: Iterable<string>): readonly string[] {
  const folders = [...inputs].map(packageFolder);
  return [...new Set(folders.filter((folder) => folder !== undefined))].toSorted();
}

/** Of the innermost package, if the file belongs to one. */
function packageFolder(path: string): string | undefined {
  const start = `/${path}`.lastIndexOf("/node_modules/") + "node_modules/".length;
  const inside = /^(?:@[^/]+\/)?[^/]+(?=\/)/.exec(path.slice(start))?.[0];
  return !`/${path}`.includes("/node_modules/") || inside === undefined
    ? undefined
    : path.slice(0, start) + inside;
}

/** The bill's JSON text. */
export async function billOfMaterials(root: string, bill: Bill): Promise<string> {
  const bases = ["bun", ...bill.platforms.map(({ basePackage }) => basePackage)];
  const locked = await lockedPackages(root);
  const bunVersion = Bun.version;
  const inside = await Promise.all(
    packageFolders(bill.inputs).map(async (folder) => component(join(root, folder), locked)),
  );
  const runtimes = bases.map((name) => ({
    name,
    version: bunVersion,
    license: "MIT",
    sha512: locked.get(`${name}@${bunVersion}`),
  }));
  const own = {
    type: "application",
    name: "cluster-e2e",
    version: bill.tag,
    licenses: [{ license: { id: "Apache-2.0" } }],
  };
  const text = {
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    version: 1,
    metadata: {
      timestamp: new Date(bill.time).toISOString(),
      component: { ...own, "bom-ref": "cluster-e2e" },
    },
    components: [...runtimes, ...inside].map(asCycloneDx),
  };
  return `${JSON.stringify(text, undefined, 2)}\n`;
}

async function component(folder: string, locked: ReadonlyMap<string, string>): Promise<Component> {
  const { name, version, license } = (await Bun.file(
    join(folder, "package.json"),
  ).json()) as PackageFile;
  return { name, version, license, sha512: locked.get(`${name}@${version}`) };
}

interface PackageFile {
  readonly name: string;
  readonly version: string;
  readonly license?: string;
}

/** Checksums of bun.lock (base64) by `name@version`. The file is JSON but for commas before closing brackets. */
async function lockedPackages(root: string): Promise<ReadonlyMap<string, string>> {
  const text = await Bun.file(join(root, "bun.lock")).text();
  const lock = JSON.parse(text.replaceAll(/,(\s*[}\]])/g, "$1")) as {
    readonly packages: Readonly<Record<string, readonly [string, ...unknown[]]>>;
  };
  return new Map(
    Object.values(lock.packages).flatMap((entry) => {
      const checksum = entry.at(-1);
      return typeof checksum === "string" && checksum.startsWith("sha512-")
        ? [[entry[0], checksum.slice(7)]]
        : [];
    }),
  );
}

function asCycloneDx({ name, version, license, sha512 }: Component): object {
  const purl = `pkg:npm/${name.replace("@", "%40")}@${version}`;
  return {
    type: "library",
    "bom-ref": purl,
    name,
    version,
    purl,
    ...(license !== undefined && {
      licenses: [
        /^[\w.-]+$/.test(license) ? { license: { id: license } } : { expression: license },
      ],
    }),
    ...(sha512 !== undefined && {
      hashes: [{ alg: "SHA-512", content: Buffer.from(sha512, "base64").toString("hex") }],
    }),
  };
}
