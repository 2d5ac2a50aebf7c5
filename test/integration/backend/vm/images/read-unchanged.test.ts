/** What a cluster's file takes from below the machines' disks, in a folder that somebody else can write to. */
import { expect, test } from "bun:test";
import { rename, symlink, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { readUnchanged } from "../../../../../src/backend/vm/images/base-layers.ts";
import { identityOf } from "../../../../../src/backend/vm/images/image-verification.ts";
import { failureOf } from "../../../../support/failure-of.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";
import { scratchFolder } from "../../../../support/scratch-folder.ts";

const sha256 = new Bun.CryptoHasher("sha256").update("image").digest("hex");

async function startLayer() {
  const folder = await scratchFolder();
  const [path, aside, secret] = ["image", "aside", "secret"].map((name) => join(folder.path, name));
  await writeFile(path!, "image");
  await writeFile(secret!, "a private file");
  const layer = {
    path: path!,
    sum: { algorithm: "sha256", hex: sha256 } as const,
    identity: await identityOf(path!),
  };
  const swap = async (): Promise<void> => {
    await rename(path!, aside!);
    await symlink(secret!, path!);
  };
  const read = async (readBelow: () => Promise<unknown> = async () => 3) =>
    readUnchanged(path!, { clusterId: "c", base: [layer] }, readBelow, neverAborted);
  return { ...folder, path: path!, aside: aside!, swap, read };
}

test("a layer is read with what it is layered on, also if only its times have changed", async () => {
  await using layer = await startLayer();
  const expected = { bytes: 5, sha256, below: 3 };
  expect(await layer.read()).toEqual(expected);
  await utimes(layer.path, 1, 1);
  expect(await layer.read()).toEqual(expected);
});

test("what has replaced a layer isn't taken for it", async () => {
  await using layer = await startLayer();
  await layer.swap();
  const failure = await failureOf(layer.read());
  expect([failure.id, failure.message]).toEqual([
    "image-not-found",
    `${layer.path}, which the disks of cluster "c" are layered on, was replaced or changed since the machines were created.`,
  ]);
});

test.each(["and stays", "and comes back"])(
  "a layer that is replaced while its own layers are looked for, %s, is refused",
  async (fate) => {
    await using layer = await startLayer();
    const reading = layer.read(async () => {
      await layer.swap();
      if (fate === "and comes back") await rename(layer.aside, layer.path);
    });
    expect((await failureOf(reading)).id).toBe("image-not-found");
  },
);
