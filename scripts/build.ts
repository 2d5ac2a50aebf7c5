/**
 * Builds this machine's executables, one per file in src/bin, into dist/.
 * Usage: bun run build
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

/** The release's tag at HEAD, else `0.0.0+<commit>`; `0.0.0+unknown` outside a git checkout. */
export async function buildVersion(): Promise<string> {
  const tags = await git("tag", "--points-at", "HEAD");
  const release = tags?.split("\n").find((tag) => /^\d{4}\.\d{1,2}\.\d{1,2}\.\d+$/.test(tag));
  if (release !== undefined) return release;
  return `0.0.0+${(await git("rev-parse", "--short=12", "HEAD")) ?? "unknown"}`;
}

/** Standard output of git, or undefined where git or its answer is missing. */
async function git(...args: readonly string[]): Promise<string | undefined> {
  if (Bun.which("git") === null) return undefined;
  const child = Bun.spawn(["git", "-c", "safe.directory=*", "-C", root, ...args], { stdout: "pipe", stderr: "ignore" });
  const text = (await new Response(child.stdout).text()).trim();
  return (await child.exited) === 0 && text !== "" ? text : undefined;
}

interface Compilation {
  readonly source: string;
  readonly plugins?: readonly BunPlugin[];
  /** How many levels of nested functions get byte code; default: all. */
  readonly bytecodeDepth?: number;
  /** Its last part becomes part of the bytes; map files may land beside it. */
  readonly outfile: string;
  readonly version: string;
  /** One of Bun's, with the path of a Bun for it; without it, this machine's with the Bun that runs. */
  readonly platform?: { readonly target: Build.CompileTarget; readonly base: string };
}

/** How a program in src/bin is made, beyond what all are. */
export type ProgramBuild = Pick<Compilation, "plugins" | "bytecodeDepth">;

/**
 * Byte code for nested functions takes a third of what a program adds to Bun. Without it, a command of cluster-container takes 2 to 5 ms more, one of
 * cluster-cloud, with the cloud's SDK, 18 ms more: half as much again.
 */
export async function programBuild(program: string): Promise<ProgramBuild> {
  const plugins = [withPreparedHelp(await declared(root, program))];
  return program === "cluster-cloud" ? { plugins } : { plugins, bytecodeDepth: 1 };
}

const usualPlugins = [withoutNativeModules, withoutUnusedParts];

/** Makes one executable as every one of ours is made. Gives the files that went into it. Throws with the bundler's own lines. */
export async function compile({
  source,
  plugins,
  bytecodeDepth,
  outfile,
  version,
  platform,
}: Compilation): Promise<readonly string[]> {
  return await bundle(source, {
    plugins: [...usualPlugins, ...(plugins ?? [])],
    minify: true,
    sourcemap: "linked",
    // Start-up: byte code and lazy chunks; either without the other two gains nothing or breaks top-level await.
    bytecode: true,
    ...(bytecodeDepth !== undefined && { bytecodeDepth }),
    format: "esm",
    splitting: true,
    define: {
      "process.env.NODE_ENV": '"production"',
      CLUSTER_E2E_VERSION: JSON.stringify(version),
      // ssh2 bakes its own folder in; with these the same sources give the same bytes from any folder.
      __dirname: '"/"',
      __filename: '"/x"',
    },
    compile: {
      outfile,
      ...(platform !== undefined && { target: platform.target, executablePath: platform.base }),
      // Users stand in other people's checkouts: an executable must not run that folder's bunfig.toml or read its .env.
      autoloadDotenv: false,
      autoloadBunfig: false,
    },
  });
}

/** Gives the files that went into it. */
async function bundle(source: string, options: Partial<Bun.BuildConfig>): Promise<readonly string[]> {
  const built = await Bun.build({
    plugins: usualPlugins,
    ...options,
    entrypoints: [source],
    target: "bun",
    metafile: true,
    throw: false,
  });
  if (!built.success) throw new Error([`cannot build ${source}:`, ...built.logs.map(logLine)].join("\n"));
  return Object.keys(built.metafile?.inputs ?? {}).map((path) => relative(root, resolve(path)));
}

function logLine({ message, position }: BuildMessage | ResolveMessage): string {
  return position === null ? message : `${position.file}:${position.line}:${position.column}: ${message}`;
}

/** Builds src/bin/<program>.ts into dist/ and gives the executable's path. */
export async function buildProgram(program: string, version: string): Promise<string> {
  await mkdir(dist, { recursive: true });
  // A folder of its own, on the same file system: two builds at once do not mix, and dist holds only what is whole.
  const folder = await mkdtemp(join(dist, ".build-"));
  const onSignal = (signal: NodeJS.Signals): void => {
    rmSync(folder, { recursive: true, force: true });
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  };
  for (const signal of signals) process.on(signal, onSignal);
  try {
    const source = join(root, "src", "bin", `${program}.ts`);
    await compile({ source, ...(await programBuild(program)), outfile: join(folder, program), version });
    await rename(join(folder, program), join(dist, program));
    return join(dist, program);
  } finally {
    for (const signal of signals) process.off(signal, onSignal);
    await rm(folder, { recursive: true, force: true });
  }
}

/** The files that go into the executables, from the repository's top, without making any. */
export async function bundledFiles(): Promise<readonly string[]> {
  const names = await programs();
  const files = await Promise.all(names.map((name) => bundle(join(root, "src", "bin", `${name}.ts`), {})));
  return [...new Set(files.flat())].toSorted();
}

/** Names of the programs whose sources are here, in order. */
export async function programs(): Promise<readonly string[]> {
  const files = await readdir(join(root, "src", "bin"));
  const names = files.filter((file) => /^cluster-.*\.ts$/.test(file)).map((file) => basename(file, ".ts"));
  return names.toSorted((one, other) => (one < other ? -1 : 1));
}

async function main(): Promise<void> {
  const version = await buildVersion();
  // One after the other: each takes all cores for its second.
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
