/** A trial release, built from a commit with the contents of this checkout, and served on loopback. */
import { mkdir, readdir, rm, stat, writeFile } from "node:fs/promises";
import { join, normalize } from "node:path";
import { repository } from "./executable.ts";
import { shell } from "./shell.ts";
import { temporaryFolder } from "./temporary-folder.ts";
import { serveOnLoopback } from "../../support/loopback-server.ts";

export interface ReleaseFolder extends AsyncDisposable {
  /** Holds everything below; removed at the end. */
  readonly folder: string;
  /** A clean checkout whose HEAD is what was released. */
  readonly checkout: string;
  /** The files of the release, below a folder of the tag's name. */
  readonly files: string;
  readonly tag: string;
  /** Where the folders of all tags lie, on loopback. */
  readonly downloadRoot: string;
  /** What its maker was told. */
  readonly said: string;
}

/** A git repository of its own with this checkout's files, also those not committed yet, and its packages. `replaced` has other texts for some files. */
export async function commitOfThis(
  folder: string,
  replaced: Readonly<Record<string, string>> = {},
): Promise<string> {
  const checkout = join(folder, "checkout");
  await mkdir(checkout);
  const listed = "git -c safe.directory='*' ls-files --cached --others --exclude-standard -z";
  await shell(
    `${listed} | tar --null --ignore-failed-read -T - -c 2>/dev/null | tar -x -C "$0"`,
    [checkout],
    repository,
  );
  for (const [name, text] of Object.entries(replaced)) await Bun.write(join(checkout, name), text);
  // Not a link to them: the bundler would write the path from here to there into what it makes.
  await copyLinked(join(repository, "node_modules"), join(checkout, "node_modules"));
  await shell(
    `git init -q -b main && echo node_modules >.git/info/exclude && git add -A &&
    git config user.name Tester && git config user.email tester@example.com && git commit -q -m "Everything"`,
    [],
    checkout,
  );
  return checkout;
}

/** Copies a folder by hard links, or byte for byte where it lies on another file system. */
export async function copyLinked(source: string, target: string): Promise<void> {
  await mkdir(target, { recursive: true });
  await shell('cp -PRl "$0/." "$1" 2>/dev/null || cp -PRf "$0/." "$1"', [source, target], "/");
}

/**
 * Makes it, signed by a key made for it, with more words for `bun run release` and more variables in its environment. Its maker doesn't check the
 * sources. The archive of one platform is larger than a real one, because it takes xz a minute less.
 */
export async function makeRelease(
  more: readonly string[],
  environment: Readonly<Record<string, string>>,
  largePlatform: string,
): Promise<ReleaseFolder> {
  await using made = new AsyncDisposableStack();
  const folder = made.use(await temporaryFolder());
  const server = made.use(serveFolder(join(folder.path, "served")));
  const key = join(folder.path, "key");
  await shell(`ssh-keygen -q -t ed25519 -N '' -C releaser -f "$0"`, [key], folder.path);
  const checkout = await commitOfThis(folder.path, { "scripts/check.ts": "" });
  const output = join(folder.path, "served", "next");
  const words = [
    "--dry-run",
    "--url",
    server.url,
    "--repository",
    "https://git.example.com/cluster-e2e.git",
    ...more,
  ];
  const argv = [
    process.execPath,
    "run",
    "release",
    ...words,
    "--signing-key",
    key,
    "--output",
    output,
  ];
  const path = await pathWithFastXz(join(folder.path, "bin"), largePlatform);
  const variables = Object.entries({ ...environment, PATH: path }).map(
    ([name, value]) => `${name}=${value}`,
  );
  const said = await shell('exec env "$@"', ["env", ...variables, ...argv], checkout);
  const installer = await Bun.file(join(output, "install.sh")).text();
  const tag = /^release='(.*)'$/m.exec(installer)?.[1];
  if (tag === undefined) throw new Error("install.sh was not told its release");
  const files = join(folder.path, "served", tag);
  await shell('mv "$0" "$1"', [output, files], folder.path);
  const kept = made.move();
  return {
    folder: folder.path,
    checkout,
    files,
    tag,
    downloadRoot: server.url,
    said,
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

async function pathWithFastXz(bin: string, platform: string): Promise<string> {
  const real = Bun.which("xz");
  const script = `#!/bin/sh\ncase $(readlink /proc/$$/fd/1) in *-${platform}.tar.xz) set -- --stdout -0 ;; esac\nexec '${real}' "$@"\n`;
  await mkdir(bin);
  await writeFile(join(bin, "xz"), script, { mode: 0o755 });
  return `${bin}:${process.env["PATH"]}`;
}

/** Files below a folder, on loopback, without an index. */
export function serveFolder(folder: string): AsyncDisposable & { readonly url: string } {
  const server = serveOnLoopback(async ({ url }) => {
    const file = Bun.file(join(folder, normalize(decodeURIComponent(new URL(url).pathname))));
    return (await file.exists())
      ? new Response(file)
      : new Response("no such file\n", { status: 404 });
  });
  return {
    url: server.url.href.replace(/\/$/, ""),
    [Symbol.asyncDispose]: async () => server.stop(true),
  };
}

/** All files and folders below a folder, in order; none where it is not there. */
export async function everythingIn(folder: string): Promise<readonly string[]> {
  const names = await readdir(folder, { recursive: true }).catch(() => []);
  return names.toSorted((one, other) => (one < other ? -1 : 1));
}

/** Changes one bit in the middle of a file, and back when it is disposed of. */
export async function flippedBit(path: string): Promise<AsyncDisposable> {
  const flip = async (): Promise<void> => {
    const bytes = await Bun.file(path).bytes();
    const middle = Math.floor(bytes.length / 2);
    bytes[middle] = bytes[middle]! ^ 1;
    const { mode } = await stat(path);
    await rm(path);
    await writeFile(path, bytes, { mode });
  };
  await flip();
  return { [Symbol.asyncDispose]: flip };
}
