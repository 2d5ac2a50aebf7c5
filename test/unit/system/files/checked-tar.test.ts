import { expect, test } from "bun:test";
import { Readable } from "node:stream";
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { checkedTar } from "../../../../src/system/files/checked-tar.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import { type RawEntry, paxRecord, rawArchive, rawEntry } from "../../../support/tar-blocks.ts";

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
    const bytes = Buffer.from(
      await Bun.$`tar --format=${format} -C ${root} -c .`.quiet().arrayBuffer(),
    );
    for (const chunkBytes of [7, 512, 65_536])
      expect((await pass(bytes, chunkBytes)).equals(bytes)).toBe(true);
  },
);

const pax = (key: string, value: string): RawEntry => ({
  name: "pax",
  type: "x",
  contents: paxRecord(key, value),
});

test.each<[string, readonly RawEntry[]]>([
  ["leads out of the archive", [{ name: "usr/../../x" }]],
  ["leads out of the archive", [{ name: ".." }]],
  ["leads out of the archive", [{ name: "x", prefix: ".." }]],
  ["leads out of the archive", [{ name: `${"a".repeat(97)}/..` }]],
  // An engine would take these for the removal of a folder of its own.
  ["leads out of the archive", [{ name: "usr/.wh.." }]],
  ["leads out of the archive", [{ name: "usr/.wh..." }]],
  ["leads out of the archive", [{ name: "link", type: "1", linkTarget: "../x" }]],
  ["leads out of the archive", [{ name: "long", type: "L", contents: "../x\0" }, { name: "a" }]],
  [
    "leads out of the archive",
    [
      { name: "long", type: "K", contents: "../x\0" },
      { name: "link", type: "1", linkTarget: "a" },
    ],
  ],
  // Engines don't apply a global header to names.
  ["leads out of the archive", [{ ...pax("path", "a"), type: "g" }, { name: "../x" }]],
  ["is not a name within the archive", [{ name: "/etc/passwd" }]],
  ["is not a name within the archive", [{ name: "link", type: "1", linkTarget: "/etc/passwd" }]],
  [
    "leads through a symbolic link",
    [{ name: "a/up", type: "2", linkTarget: "/" }, { name: "a/up/etc/x" }],
  ],
  [
    "leads through a symbolic link",
    [
      { name: "up", type: "2", linkTarget: "/" },
      { name: "same", type: "1", linkTarget: "./up" },
      { name: "same/x" },
    ],
  ],
  // In GNU tar's format, no prefix stands there.
  [
    "leads through a symbolic link",
    [
      { name: "up", type: "2", linkTarget: "/" },
      { name: "up/x", magic: "ustar  ", prefix: "a" },
    ],
  ],
  ["is of an unknown type", [{ name: "x", type: "Z" }]],
])("an entry that %s is refused: %j", async (problem, entries) => {
  const { message } = await failureOf(pass(rawArchive(...entries), 512));
  expect(message).toContain(problem);
});

const evil = rawEntry({ name: "../evil" });
/** A size field with a binary number. */
function binary(size: bigint): Uint8Array {
  const field = Buffer.alloc(12);
  field.writeBigUInt64BE(size, 4);
  field[0] = 0x80;
  return field;
}

test.each<[string, readonly RawEntry[]]>([
  ["a binary size", [{ name: "a", contents: evil, claimedSize: binary(512n) }]],
  ["a size of its own", [pax("size", "512"), { name: "a", contents: evil, claimedSize: 0 }]],
  ["no contents, whatever its size", [{ name: "a", type: "5", claimedSize: 512 }, { name: "a/b" }]],
])("an entry with %s is passed over as a whole", async (_, entries) => {
  const bytes = rawArchive(...entries);
  expect((await pass(bytes, 512)).equals(bytes)).toBe(true);
});

test.each<[string, Buffer, string]>([
  [
    "a binary size beyond exact numbers",
    rawArchive({ name: "a", claimedSize: binary(2n ** 53n) }),
    "is damaged",
  ],
  [
    "a binary size of more than eight bytes",
    rawArchive({ name: "a", claimedSize: binary(2n ** 63n).fill(1, 3, 4) }),
    "is damaged",
  ],
  ["a size that is no number", rawArchive(pax("size", "1e3"), { name: "a" }), "is damaged"],
  [
    "a size that hides no entry",
    rawArchive(pax("size", "0"), { name: "a", contents: evil }),
    "leads out",
  ],
  [
    "a folder's size that hides no entry",
    rawArchive({ name: "a", type: "5", contents: evil }),
    "leads out",
  ],
  ["a header without contents", rawArchive({ name: "pax", type: "x" }), "is damaged"],
  ["a header of 3 MB", rawArchive({ name: "pax", type: "x", claimedSize: 3e6 }), "is damaged"],
  ["sparse files", rawArchive(pax("GNU.sparse.major", "1"), { name: "a" }), "has sparse files"],
  [
    "an archive behind its end",
    Buffer.concat([rawArchive(), rawArchive({ name: "a" })]),
    "is damaged",
  ],
  ["another byte in a header", rawArchive({ name: "a" }).fill("b", 0, 1), "is damaged"],
  [
    "a name of 5000 characters",
    rawArchive(pax("path", "a/".repeat(2500)), { name: "a" }),
    "is not a name",
  ],
  ["a name that ends early", rawArchive(pax("path", "a\0b"), { name: "a" }), "is not a name"],
  ["an empty name", rawArchive(pax("path", ""), { name: "a" }), "is not a name"],
  [
    "a name of 300 folders",
    rawArchive(pax("path", "a/".repeat(300)), { name: "a" }),
    "has too many folders above it",
  ],
  ["a format from before POSIX", rawArchive({ name: "a", magic: "" }), "is damaged"],
  ["no end", rawEntry({ name: "a" }), "is incomplete"],
  ["half a header at its end", rawArchive().subarray(0, 513), "is incomplete"],
])("an archive with %s is refused", async (_, bytes, problem) => {
  expect((await failureOf(pass(bytes, 512))).message).toContain(problem);
});
