/**
 * Builds this machine's executables, one per file in src/bin, into dist/.
 * Usage: bun run build
 */
import { mkdir, mkdtemp, readdir, rename, rm, stat } from "node:fs/promises";
import { basename, join } from "node:path";

const root = join(import.meta.dir, "..");
const dist = join(root, "dist");

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

export function flags(version: string): readonly string[] {
  return [
    "--compile",
    "--production",
    "--minify",
    "--sourcemap",
    // Start-up: byte code and lazy chunks; either without the other two gains nothing or breaks top-level await.
    "--bytecode",
    "--format=esm",
    "--splitting",
    // Users stand in other people's checkouts: an executable must not run that folder's bunfig.toml or read its .env.
    "--no-compile-autoload-dotenv",
    "--no-compile-autoload-bunfig",
    "--define",
    `CLUSTER_E2E_VERSION=${JSON.stringify(version)}`,
    // ssh2 bakes its own folder in; with these the same sources give the same bytes from any folder.
    "--define",
    '__dirname="/"',
    "--define",
    '__filename="/x"',
  ];
}

/** Builds src/bin/<program>.ts and gives the executable's path. `target` is one of Bun's, or undefined for this machine. */
export async function buildProgram(program: string, version: string, target?: string): Promise<string> {
  await mkdir(dist, { recursive: true });
  // The outfile's name is part of the bytes, and map files land beside it: so a folder of its own, under its final name,
  // on the same file system as its end.
  const folder = await mkdtemp(join(dist, ".build-"));
  try {
    const child = Bun.spawn(
      [
        process.execPath,
        "build",
        ...flags(version),
        ...(target === undefined ? [] : [`--target=${target}`]),
        join(root, "src", "bin", `${program}.ts`),
        "--outfile",
        join(folder, program),
      ],
      // Bun leaves its half-written copy of itself in the working folder.
      { cwd: folder, stdout: "pipe", stderr: "pipe" },
    );
    const output = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
    if ((await child.exited) !== 0) throw new Error(`bun build of ${program} failed:\n${output.join("")}`);
    await rename(join(folder, program), join(dist, program));
    return join(dist, program);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Names of the programs whose sources are here. */
export async function programs(): Promise<readonly string[]> {
  const files = await readdir(join(root, "src", "bin"));
  return files.filter((file) => /^cluster-.*\.ts$/.test(file)).map((file) => basename(file, ".ts"));
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
