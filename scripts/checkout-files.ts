import { join } from "node:path";

/** Lists the files of the checkout, including untracked ones, without deleted ones. */
export async function checkoutFiles(root: string): Promise<readonly string[]> {
  const listing = Bun.spawn(
    [
      "git",
      "-c",
      "safe.directory=*",
      "-C",
      root,
      "ls-files",
      "-z",
      "--cached",
      "--others",
      "--exclude-standard",
    ],
    { stdout: "pipe" },
  );
  const names = (await new Response(listing.stdout).text())
    .split("\0")
    .filter((name) => name !== "");
  const isThere = await Promise.all(names.map(async (name) => Bun.file(join(root, name)).exists()));
  return names.filter((_, index) => isThere[index] === true);
}
