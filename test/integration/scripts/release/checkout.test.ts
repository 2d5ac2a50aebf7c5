/** A release's requirements on git, and what it leaves there. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { commitAndTag, releasableCheckout } from "../../../../scripts/release/checkout.ts";
import { output } from "../../../../scripts/release/command.ts";
import type { TemporaryFolder } from "../../../../src/system/files/private-file.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

const tag = "2026.03.09.0";

/** A checkout with one commit, whose `check` runs the given script. */
async function checkoutWith(
  check: string,
): Promise<TemporaryFolder & { git(...words: string[]): Promise<string> }> {
  const folder = await scratchFolder();
  const git = (...words: string[]): Promise<string> =>
    output(["git", ...words], { cwd: folder.path });
  await Bun.write(join(folder.path, "scripts", "check.ts"), check);
  await Bun.write(join(folder.path, "CHANGELOG.md"), "before\n");
  await git("init", "--quiet", "--initial-branch", "main");
  await git("config", "user.name", "Tester");
  await git("config", "user.email", "tester@example.com");
  await git("add", "--all");
  await git("commit", "--quiet", "--message", "Begin");
  return { ...folder, git };
}

// Shows R16.
test("a release is one commit of the changelog, with a tag that contains the notes", async () => {
  await using checkout = await checkoutWith("");
  const committed = Number(await checkout.git("log", "--format=%ct", "-1"));
  const { tags, time } = await releasableCheckout(checkout.path);
  expect(tags).toEqual([""]);
  expect(time).toBe(committed * 1000);
  await Bun.write(join(checkout.path, "CHANGELOG.md"), "after\n");
  await commitAndTag(checkout.path, tag, "- A thing.\n# 1 is no comment");
  expect(await checkout.git("log", "--format=%s", "--stat", "-1")).toContain(
    `Release ${tag}\n\n CHANGELOG.md | 2 +-`,
  );
  expect(await checkout.git("tag", "--list", "--format=%(contents)")).toBe(
    `${tag}\n\n- A thing.\n# 1 is no comment`,
  );
  const failure = await failureOf(releasableCheckout(checkout.path));
  expect(failure.message).toBe(`HEAD has already been released as ${tag}.`);
});

test("the tag has what was built for the release, and the branch has not", async () => {
  await using checkout = await checkoutWith("");
  await Bun.write(join(checkout.path, ".gitignore"), "dist/\n");
  await checkout.git("add", "--all");
  await checkout.git("commit", "--quiet", "--message", "Ignore");
  for (const name of ["library/index.js", "library/model/node.js", "program"])
    await Bun.write(join(checkout.path, "dist", name), "built\n");
  await Bun.write(join(checkout.path, "CHANGELOG.md"), "after\n");
  await commitAndTag(checkout.path, tag, "- A thing.", [join(checkout.path, "dist", "library")]);
  const filesOf = async (commit: string): Promise<readonly string[]> =>
    (await checkout.git("ls-tree", "-r", "--name-only", commit)).split("\n");
  const own = [".gitignore", "CHANGELOG.md", "scripts/check.ts"];
  expect(await filesOf("main")).toEqual(own);
  expect((await filesOf(tag)).toSorted()).toEqual(
    [...own, "dist/library/index.js", "dist/library/model/node.js"].toSorted(),
  );
  expect(await checkout.git("show", `${tag}:CHANGELOG.md`)).toBe("after");
  expect(await checkout.git("rev-parse", `${tag}^{commit}^`)).toBe(
    await checkout.git("rev-parse", "main"),
  );
  expect(await checkout.git("status", "--porcelain")).toBe("");
  const failure = await failureOf(releasableCheckout(checkout.path));
  expect(failure.message).toBe(`HEAD has already been released as ${tag}.`);
});

test("a checkout with changes or a failing check is rejected", async () => {
  await using checkout = await checkoutWith("console.log('FAIL  lint'); process.exitCode = 1;");
  const red = await failureOf(releasableCheckout(checkout.path));
  expect(red.message).toBe("`bun run check` fails: fix that before releasing.");
  expect(String(red.cause)).toContain("FAIL  lint");
  await Bun.write(join(checkout.path, "new.ts"), "");
  const dirty = await failureOf(releasableCheckout(checkout.path));
  expect(dirty.message).toBe(
    "The checkout is not clean: commit or remove these changes first.\n?? new.ts",
  );
});
