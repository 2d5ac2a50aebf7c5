import { expect, test } from "bun:test";
import { Readable } from "node:stream";
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { checkedTar } from "../../../../src/system/files/checked-tar.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import { type RawEntry, rawArchive } from "../../../support/tar-blocks.ts";

async function pass(bytes: Buffer, chunkBytes: number): Promise<Buffer> {
  const chunks = function* (): Generator<Buffer> {
    for (let at = 0; at < bytes.length; at += chunkBytes) yield bytes.subarray(at, at + chunkBytes);
  };
  return Buffer.concat(await Array.fromAsync(checkedTar(Readable.from(chunks()))));
}

test.each(["ustar", "gnu", "posix"])(
  "an archive of a system in the format %s passes unchanged, however it is cut",
  async (format) => {
    await using folder = await scratchFolder();
    const root = join(folder.path, "root");
    const long = format === "ustar" ? "etc" : `etc/${"long-name/".repeat(15)}`;
    await mkdir(join(root, "usr/bin"), { recursive: true });
    await mkdir(join(root, long), { recursive: true });
    await writeFile(join(root, "usr/bin/true"), Buffer.alloc(3000, "x"));
    await writeFile(join(root, long, "file"), "x");
    await symlink("/usr/bin", join(root, "bin"));
    await symlink("../../..", join(root, "usr/up"));
    // A name need not be UTF-8.
    const script = "ln usr/bin/true usr/bin/yes; mkfifo pipe; printf x >etc/$(printf 'caf\\351')";
    await Bun.$`sh -ec ${script}`.cwd(root);
    const bytes = Buffer.from(await Bun.$`tar --format=${format} -C ${root} -c .`.quiet().arrayBuffer());
    for (const chunkBytes of [7, 512, 65_536]) expect((await pass(bytes, chunkBytes)).equals(bytes)).toBe(true);
  },
);

test.each<[string, readonly RawEntry[]]>([
  ["leads out of the archive", [{ name: "usr/../../x" }]],
  ["leads out of the archive", [{ name: ".." }]],
  // An engine would take these for the removal of a folder of its own.
  ["leads out of the archive", [{ name: "usr/.wh.." }]],
  ["leads out of the archive", [{ name: "usr/.wh..." }]],
  ["leads out of the archive", [{ name: "link", type: "1", linkTarget: "../x" }]],
  ["is not a name within the archive", [{ name: "/etc/passwd" }]],
  ["is not a name within the archive", [{ name: "link", type: "1", linkTarget: "/etc/passwd" }]],
  ["leads through a symbolic link", [{ name: "a/up", type: "2", linkTarget: "/" }, { name: "a/up/etc/x" }]],
  [
    "leads through a symbolic link",
    [
      { name: "up", type: "2", linkTarget: "/" },
      { name: "same", type: "1", linkTarget: "./up" },
      { name: "same/etc/x" },
    ],
  ],
  ["is of an unknown type", [{ name: "x", type: "Z" }]],
])("an entry that %s is refused: %j", async (problem, entries) => {
  const { message } = await failureOf(pass(rawArchive(...entries), 512));
  expect(message).toContain(problem);
});
