/** The checkout that a release is made from. */
import { rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { output } from "./command.ts";

export interface Checkout {
  readonly tags: readonly string[];
  /** When HEAD was committed, in milliseconds since 1970. */
  readonly time: number;
}

/** Throws where the checkout holds what is not committed, where HEAD is released already, or where `bun run check` fails. */
export async function releasableCheckout(root: string): Promise<Checkout> {
  const git = (...words: readonly string[]): Promise<string> =>
    output(["git", ...words], { cwd: root });
  const changes = await git("status", "--porcelain");
  if (changes !== "")
    throw new Error(`The checkout is not clean: commit or remove these changes first.\n${changes}`);
  const released = (await git("tag", "--contains", "HEAD"))
    .split("\n")
    .filter((tag) => /^\d{4}\./.test(tag));
  if (released.length > 0)
    throw new Error(`HEAD has already been released as ${released.join(", ")}.`);
  await output([process.execPath, "run", join("scripts", "check.ts")], { cwd: root }).catch(
    (error: unknown) => {
      throw new Error("`bun run check` fails: fix that before releasing.", { cause: error });
    },
  );
  const tags = (await git("tag", "--list")).split("\n");
  return { tags, time: Number(await git("log", "-1", "--format=%ct")) * 1000 };
}

/**
 * Commits the changelog as it was cut, and tags the release. If there are folders of what was built for it, which git ignores, the tag's commit is a child
 * of that one and has them too, while no branch has: npm builds nothing of a package that it installs globally from git.
 */
export async function commitAndTag(
  root: string,
  tag: string,
  notes: string,
  built: readonly string[] = [],
): Promise<void> {
  await output(["git", "commit", "--quiet", "--message", `Release ${tag}`, "--", "CHANGELOG.md"], {
    cwd: root,
  });
  const commit = built.length === 0 ? "HEAD" : await commitWith(root, tag, built);
  await output(["git", "tag", "--annotate", "--cleanup=verbatim", tag, commit, "--file", "-"], {
    cwd: root,
    stdin: `${tag}\n\n${notes}\n`,
  });
}

/** Returns a commit of HEAD's files and those of some folders, which changes neither the branch nor the index. */
async function commitWith(root: string, tag: string, folders: readonly string[]): Promise<string> {
  const index = resolve(
    root,
    await output(["git", "rev-parse", "--git-path", "release-index"], { cwd: root }),
  );
  const git = (...words: readonly string[]): Promise<string> =>
    output(["git", ...words], { cwd: root, environment: { GIT_INDEX_FILE: index } });
  try {
    await git("read-tree", "HEAD");
    await git("add", "--force", "--", ...folders);
    const message = `Add what was built for ${tag}`;
    return await git("commit-tree", await git("write-tree"), "-p", "HEAD", "-m", message);
  } finally {
    await rm(index, { force: true });
  }
}
