/** The checkout that a release is made from. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { output } from "./command.ts";

export interface Checkout {
  readonly tags: readonly string[];
  /** When HEAD was committed, in milliseconds since 1970. */
  readonly time: number;
}

/** Throws where the checkout holds what is not committed, where HEAD is released already, or where `bun run check` fails. */
export async function releasableCheckout(root: string): Promise<Checkout> {
  const git = (...words: readonly string[]): Promise<string> => output(["git", ...words], { cwd: root });
  const changes = await git("status", "--porcelain");
  if (changes !== "") throw new Error(`The checkout is not clean: commit or remove these changes first.\n${changes}`);
  const released = (await git("tag", "--contains", "HEAD")).split("\n").filter((tag) => /^\d{4}\./.test(tag));
  if (released.length > 0) throw new Error(`HEAD has already been released as ${released.join(", ")}.`);
  await output([process.execPath, "run", join("scripts", "check.ts")], { cwd: root }).catch((error: unknown) => {
    throw new Error("`bun run check` fails: fix that before releasing.", { cause: error });
  });
  const tags = (await git("tag", "--list")).split("\n");
  return { tags, time: Number(await git("log", "-1", "--format=%ct")) * 1000 };
}

/** Commits the changelog as it was cut, and tags what package installers can install of that commit. */
export async function commitAndTag(root: string, tag: string, notes: string): Promise<void> {
  await output(["git", "commit", "--quiet", "--message", `Release ${tag}`, "--", "CHANGELOG.md"], { cwd: root });
  const tagged = await installableCommit(root, tag);
  await output(["git", "tag", "--annotate", "--cleanup=verbatim", tag, tagged, "--file", "-"], {
    cwd: root,
    stdin: `${tag}\n\n${notes}\n`,
  });
}

/**
 * A commit on top of HEAD, on no branch, whose package.json lacks the script `build`. For a package from git that has one of that name, npm 11
 * (https://github.com/npm/pacote, "git dep preparation") runs an install of its own, with `--global` where that was given, and what it leaves
 * replaces the package.
 */
async function installableCommit(root: string, tag: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "cluster-e2e-release-"));
  try {
    return await commitWithoutBuild(root, tag, folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function commitWithoutBuild(root: string, tag: string, folder: string): Promise<string> {
  const index = { GIT_INDEX_FILE: join(folder, "index") };
  const git = (...words: readonly string[]): Promise<string> =>
    output(["git", ...words], { cwd: root, environment: index });
  const { scripts = {}, ...others } = (await Bun.file(join(root, "package.json")).json()) as PackageFile;
  const kept = Object.fromEntries(Object.entries(scripts).filter(([name]) => name !== "build"));
  const file = join(folder, "package.json");
  await Bun.write(file, `${JSON.stringify({ ...others, scripts: kept }, undefined, 2)}\n`);
  await git("read-tree", "HEAD");
  await git("update-index", "--add", "--cacheinfo", `100644,${await git("hash-object", "-w", file)},package.json`);
  const tree = await git("write-tree");
  return await git("commit-tree", tree, "-p", "HEAD", "-m", `Release ${tag}, for package installers`);
}

interface PackageFile {
  readonly scripts?: Readonly<Record<string, string>>;
}
