/** Which image a file's lowest layer is, among those on this computer. */
import { expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { findImage } from "../../../../../src/backend/vm/files/layers.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";
import { scratchFolder } from "../../../../support/scratch-folder.ts";

/** The head of a qcow2 disk of version 3. */
function qcow2({ backing = 0n, features = 0n } = {}): Buffer {
  const head = Buffer.alloc(104);
  head.write("QFI\u00fb", "latin1");
  head.writeUInt32BE(3, 4);
  head.writeBigUInt64BE(backing, 8);
  head.writeBigUInt64BE(features, 72);
  return head;
}

const sum = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");
const ownName = (bytes: Buffer): string => `own-${sum(bytes).slice(0, 16)}.img`;

/** Looks for an image with these bytes among these files. Returns its name. */
async function find(bytes: Buffer, format: "qcow2" | "raw", files: Readonly<Record<string, Buffer>>) {
  await using folder = await scratchFolder();
  for (const [name, contents] of Object.entries(files)) await writeFile(join(folder.path, name), contents);
  const found = await findImage(folder.path, { format, bytes: bytes.length, sha256: sum(bytes) }, neverAborted);
  return found?.slice(folder.path.length + 1);
}

const raw = Buffer.from("an image");
const other = Buffer.from("no image");

test("an image is known by its contents, whatever its name, and first by the name of own images", async () => {
  expect(await find(raw, "raw", { "debian-1.img": other, "debian-2.img": raw })).toBe("debian-2.img");
  expect(await find(raw, "raw", { "a.img": raw, [ownName(raw)]: raw, "z.img": raw })).toBe(ownName(raw));
  expect(await find(qcow2(), "qcow2", { "debian.img": qcow2() })).toBe("debian.img");
});

test("other contents and other kinds of files are no such image", async () => {
  const shorter = raw.subarray(1);
  expect(
    await find(raw, "raw", { [ownName(raw)]: other, "a.img": shorter, "b.img.part": raw, c: raw }),
  ).toBeUndefined();
  expect(await find(raw, "raw", {})).toBeUndefined();
});

test.each([
  ["is a layer itself", qcow2({ backing: 512n })],
  ["keeps its contents in another file", qcow2({ features: 4n })],
  ["isn't one", raw],
])("a disk that %s is no image, though its contents are the same", async (_, bytes) => {
  expect(await find(bytes, "qcow2", { "debian.img": bytes })).toBeUndefined();
});
