/** Which of the images on this computer are a file's layers. */
import { expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import {
  type LayerStore,
  findImage,
  storeLayer,
} from "../../../../../src/backend/vm/files/layers.ts";
import { imageFolder } from "../../../../../src/backend/vm/images/image-store.ts";
import {
  identityOf,
  recordVerification,
} from "../../../../../src/backend/vm/images/image-verification.ts";
import { systemClock } from "../../../../../src/system/runtime.ts";
import { silentProgress } from "../../../../support/silent-progress.ts";
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
async function find(
  bytes: Buffer,
  format: "qcow2" | "raw",
  files: Readonly<Record<string, Buffer>>,
) {
  await using folder = await scratchFolder();
  for (const [name, contents] of Object.entries(files))
    await writeFile(join(folder.path, name), contents);
  const found = await findImage(
    folder.path,
    { format, bytes: bytes.length, sha256: sum(bytes) },
    neverAborted,
  );
  return found?.slice(folder.path.length + 1);
}

async function* chunks(bytes: Buffer): AsyncGenerator<Uint8Array, void, undefined> {
  yield bytes;
}

const raw = Buffer.from("an image");
const other = Buffer.from("no image");

test("an image is known by its contents, whatever its name, and first by the name of own images", async () => {
  expect(await find(raw, "raw", { "debian-1.img": other, "debian-2.img": raw })).toBe(
    "debian-2.img",
  );
  expect(await find(raw, "raw", { "a.img": raw, [ownName(raw)]: raw, "z.img": raw })).toBe(
    ownName(raw),
  );
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

test("an image that has been verified isn't read again until somebody touches it", async () => {
  await using folder = await scratchFolder();
  const path = join(folder.path, "debian.img");
  await writeFile(path, other);
  const layer = { format: "raw", bytes: raw.length, sha256: sum(raw) } as const;
  await recordVerification(path, {
    sum: { algorithm: "sha256", hex: sum(raw) },
    identity: await identityOf(path),
  });
  expect(await findImage(folder.path, layer, neverAborted)).toBe(path);
  expect(await findImage(folder.path, { ...layer, sha256: sum(other) }, neverAborted)).toBe(path);
  await utimes(path, 1, 1);
  expect(await findImage(folder.path, layer, neverAborted)).toBeUndefined();
});

test("the same contents above another layer are another image, which is unpacked once", async () => {
  await using cache = await scratchFolder();
  const environment = { XDG_CACHE_HOME: cache.path };
  const runtime = { clock: systemClock, environment, progress: silentProgress };
  const rebased: string[] = [];
  const image = async (words: readonly string[]) => {
    rebased.push(words[words.indexOf("-b") + 1]!);
    return Promise.resolve({ status: 0, stdout: "", stderr: "" });
  };
  const store = {
    qemu: { image },
    folder: imageFolder(environment),
    runtime,
    shown: "FILE",
  } as unknown as LayerStore;
  const save = async (
    bytes: Buffer,
    format: "qcow2" | "raw",
    below?: Awaited<ReturnType<typeof storeLayer>>,
  ) => {
    const layer = {
      format,
      bytes: bytes.length,
      sha256: sum(bytes),
      below: below === undefined ? undefined : 0,
    };
    return storeLayer(store, { layer, below }, chunks(bytes), neverAborted);
  };
  const [one, two] = [await save(raw, "raw"), await save(other, "raw")];
  const tops = [
    await save(qcow2(), "qcow2", one),
    await save(qcow2(), "qcow2", two),
    await save(qcow2(), "qcow2"),
  ];
  expect(new Set(tops.map(({ path }) => path)).size).toBe(3);
  expect(tops[2]!.path).toBe(join(store.folder, ownName(qcow2())));
  expect(rebased).toEqual([one.path, two.path]);
  expect(await save(qcow2(), "qcow2", one)).toEqual(tops[0]!);
  expect(rebased.length).toBe(2);
});
