/**
 * Builds this machine's executables, one per file in src/bin, into dist/.
 * Usage: bun run compile
 */
import { rmSync } from "node:fs";
import { mkdir, mkdtemp, readdir, rename, rm, stat } from "node:fs/promises";
import { basename, join, relative, resolve } from "node:path";
import type { Build, BunPlugin } from "bun";
import { withoutNativeModules, withoutUnusedParts, withPreparedHelp } from "./build-plugins.ts";
import { declared } from "./declared.ts";

const root = join(import.meta.dir, "..");
const dist = join(root, "dist");
const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** Returns the release's tag at HEAD, or `0.0.0+<commit>`, or `0.0.0+unknown` outside a git checkout. */
export async function buildVersion(): Promise<string> {
  const tags = await git("tag", "--points-at", "HEAD");
  const release = tags?.split("\n").find((tag) => /^\d{4}\.\d{1,2}\.\d{1,2}\.\d+$/.test(tag));
  if (release !== undefined) return release;
  return `0.0.0+${(await git("rev-parse", "--short=12", "HEAD")) ?? "unknown"}`;
}

/** Returns the stdout of git; undefined if git is missing, fails or prints nothing. */
async function git(...args: readonly string[]): Promise<string | undefined> {
  if (Bun.which("git") === null) return undefined;
  const child = Bun.spawn(["git", "-c", "safe.directory=*", "-C", root, ...args], {
    stdout: "pipe",
    stderr: "ignore",
  });
  const text = (await new Response(child.stdout).text()).trim();
  return (await child.exited) === 0 && text !== "" ? text : undefined;
}

interface Compilation {
  readonly source: string;
  readonly plugins?: readonly BunPlugin[];
  /** The path to write to. Its last part becomes part of the executable, so it must not vary. */
  readonly outfile: string;
  readonly version: string;
  /** A platform of Bun's, with the path of a Bun for it; default: this machine's platform and the running Bun. */
  readonly platform?: { readonly target: Build.CompileTarget; readonly base: string };
}

/** The settings of each program in src/bin that differ from the usual ones. */
export type ProgramBuild = Pick<Compilation, "plugins">;

export const programBuild = async (program: string): Promise<ProgramBuild> => ({
  plugins: [withPreparedHelp(await declared(root, program))],
});

const usualPlugins = [withoutNativeModules, withoutUnusedParts];

/** Builds one executable, and returns the files that went into it. Throws an error with the bundler's messages. */
export async function compile({
  source,
  plugins,
  outfile,
  version,
  platform,
}: Compilation): Promise<readonly string[]> {
  return await bundle(source, {
    plugins: [...usualPlugins, ...(plugins ?? [])],
    minify: true,
    sourcemap: "linked",
    // For a fast start: byte code and lazy chunks. Either of them alone gains nothing or breaks top-level await.
    bytecode: true,
    // Byte code of all functions would be half of what a program adds to Bun's size. Without it, a command that loads the SDK
    // takes half as much processor time again; others take a twentieth more.
    bytecodeDepth: 0,
    // The SDK's ES modules, of which the bundler leaves out what is not used, instead of its CommonJS ones.
    conditions: ["module"],
    format: "esm",
    splitting: true,
    define: {
      "process.env.NODE_ENV": '"production"',
      CLUSTER_E2E_VERSION: JSON.stringify(version),
      // ssh2 contains the path of its own folder. With fixed values, the same sources give the same bytes in any folder.
      __dirname: '"/"',
      __filename: '"/x"',
    },
    compile: {
      outfile,
      ...(platform !== undefined && { target: platform.target, executablePath: platform.base }),
      // The current folder may be somebody else's checkout: executables must not obey its bunfig.toml or read its .env.
      autoloadDotenv: false,
      autoloadBunfig: false,
      // Neither BUN_OPTIONS=--preload nor a debugger may bring code along. No variable can weaken this.
      execArgv: ["--disallow-code-generation-from-strings=strict"],
    },
  });
}

/** Returns the files that went into it. */
async function bundle(
  source: string,
  options: Partial<Bun.BuildConfig>,
): Promise<readonly string[]> {
  const built = await Bun.build({
    plugins: usualPlugins,
    ...options,
    entrypoints: [source],
    target: "bun",
    metafile: true,
    throw: false,
  });
  if (!built.success)
    throw new Error([`cannot build ${source}:`, ...built.logs.map(logLine)].join("\n"));
  return Object.keys(built.metafile?.inputs ?? {}).map((path) => relative(root, resolve(path)));
}

function logLine({ message, position }: BuildMessage | ResolveMessage): string {
  return position === null
    ? message
    : `${position.file}:${position.line}:${position.column}: ${message}`;
}

/** Builds src/bin/<program>.ts into dist/, and returns the executable's path. */
export async function buildProgram(program: string, version: string): Promise<string> {
  await mkdir(dist, { recursive: true });
  // Builds in a separate folder on the same file system, so that concurrent builds don't mix and dist/ holds only complete files.
  const folder = await mkdtemp(join(dist, ".build-"));
  const onSignal = (signal: NodeJS.Signals): void => {
    rmSync(folder, { recursive: true, force: true });
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  };
  for (const signal of signals) process.on(signal, onSignal);
  try {
    const source = join(root, "src", "bin", `${program}.ts`);
    await compile({
      source,
      ...(await programBuild(program)),
      outfile: join(folder, program),
      version,
    });
    await rename(join(folder, program), join(dist, program));
    return join(dist, program);
  } finally {
    for (const signal of signals) process.off(signal, onSignal);
    await rm(folder, { recursive: true, force: true });
  }
}

/** Returns the files that go into the executables, relative to the repository, without building any. */
export async function bundledFiles(): Promise<readonly string[]> {
  const names = await programs();
  const files = await Promise.all(
    names.map((name) => bundle(join(root, "src", "bin", `${name}.ts`), {})),
  );
  return [...new Set(files.flat())].toSorted();
}

/** Returns the names of all programs, in order. */
export async function programs(): Promise<readonly string[]> {
  const files = await readdir(join(root, "src", "bin"));
  const names = files
    .filter((file) => /^cluster-.*\.ts$/.test(file))
    .map((file) => basename(file, ".ts"));
  return names.toSorted((one, other) => (one < other ? -1 : 1));
}

async function main(): Promise<void> {
  const version = await buildVersion();
  // One after the other, because each build keeps all processors busy for a second.
  for (const program of await programs()) {
    const started = performance.now();
    const path = await buildProgram(program, version);
    const megabytes = (await stat(path)).size / 1e6;
    console.log(
      `dist/${program} ${version} (${megabytes.toFixed(0)} MB, ${((performance.now() - started) / 1e3).toFixed(1)} s)`,
    );
  }
}

if (import.meta.main) {
  await main().catch((error: unknown) => {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  });
}
