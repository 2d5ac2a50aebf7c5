import { expect, test } from "bun:test";
import { Readable } from "node:stream";
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { checkedTar } from "../../../../src/system/files/checked-tar.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

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
