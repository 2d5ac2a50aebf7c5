/** Builds every program for a platform and looks at what came out as closely as can be without that platform. */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { compile } from "../build.ts";
import type { ProgramBuild } from "../build.ts";
import { baseExecutable } from "./base-executables.ts";
import { isSignedByKey, signatureFaults, signedAdHoc } from "./code-signature.ts";
import { output } from "./command.ts";
import { packagesOf } from "./components.ts";
import type { Platform } from "./platforms.ts";
import { ownPlatform } from "./platforms.ts";
import { tooNewSymbolVersions } from "./symbol-versions.ts";

interface Executable {
  readonly program: string;
  readonly path: string;
  /** Files that went into it, from the repository's top. */
  readonly inputs: readonly string[];
}

export interface PlatformBuild {
  readonly platform: Platform;
  readonly executables: readonly Executable[];
  /** Sentences that say why nothing of this platform may be released. */
  readonly faults: readonly string[];
}

interface BuildRequest {
  readonly root: string;
  /** An empty one, for this platform alone. */
  readonly folder: string;
  readonly programs: readonly string[];
  readonly version: string;
  readonly build: (program: string) => Promise<ProgramBuild>;
}

export async function buildPlatform(
  platform: Platform,
  request: BuildRequest,
): Promise<PlatformBuild> {
  const { root, folder, programs, version } = request;
  const bases = join(folder, "base");
  await mkdir(bases, { recursive: true });
  const base = await baseExecutable(platform, root, bases);
  // bun.lock's checksum was compared when the package was downloaded; since then it lay in the package manager's cache.
  const baseFaults = platform.os === "darwin" ? signatureFaultsOf(await readFile(base)) : [];
  if (baseFaults.length > 0) {
    return {
      platform,
      executables: [],
      faults: baseFaults.map((fault) => `Bun for ${platform.name} ${fault}`),
    };
  }
  const executables: Executable[] = [];
  for (const program of programs) {
    // The file's own name becomes part of its bytes: the platform stands in the folder's.
    const path = join(folder, "build", program);
    const source = join(root, "src", "bin", `${program}.ts`);
    const bun = { target: platform.target, base };
    const inputs = await compile({
      source,
      ...(await request.build(program)),
      outfile: path,
      version,
      platform: bun,
    });
    if (platform.os === "darwin") await sign(path);
    executables.push({ program, path, inputs });
  }
  const faults = (
    await Promise.all(executables.map(async (each) => faultsOf(platform, each, version)))
  ).flat();
  return { platform, executables, faults };
}

/**
 * Bun 1.4.4 signs what it compiles for ARM Macs anew, but leaves the signature of Bun itself, now wrong, in what it compiles for
 * Intel ones. To be dropped once it does that for both. No other fault is signed over: a file that changed on its way stays wrong.
 */
async function sign(path: string): Promise<void> {
  const file = await readFile(path);
  if (isSignedByKey(file)) await writeFile(path, signedAdHoc(file));
}

/** As `signatureFaults`, where being no Mach-O file is one as well. */
function signatureFaultsOf(file: Buffer): readonly string[] {
  try {
    return signatureFaults(file);
  } catch (error) {
    return [error instanceof Error ? error.message : String(error)];
  }
}

async function faultsOf(
  platform: Platform,
  executable: Executable,
  version: string,
): Promise<readonly string[]> {
  const file = await readFile(executable.path);
  const faults = [
    ...(platform.os === "darwin" ? signatureFaultsOf(file) : []),
    ...(platform.os === "linux" ? tooNewSymbolVersions(file).map((name) => `needs ${name}`) : []),
    ...foreignResources(executable),
    ...(platform === ownPlatform() ? await startFaults(executable.path, version) : []),
  ];
  return faults.map((fault) => `${executable.program} for ${platform.name} ${fault}`);
}

/** The cloud's SDK is large: it belongs in the program for the cloud alone. */
function foreignResources({ program, inputs }: Executable): readonly string[] {
  if (program === "cluster-cloud") return [];
  const packages = packagesOf(inputs).filter((name) => /^@(aws-sdk|smithy|aws)\//.test(name));
  return packages.length === 0
    ? []
    : [`contains packages of the cloud's SDK: ${packages.join(", ")}`];
}

async function startFaults(path: string, version: string): Promise<readonly string[]> {
  const said = await output([path, "--version"], { cwd: "/" });
  return said === version ? [] : [`reports the version ${said}`];
}
