/** Files and images that somebody has put in place of others: what was checked is what is used. */
import { readFile, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "bun:test";
import {
  exampleClusterFile,
  leftOfFiles,
  loadClusterFile,
  makeDisk,
  withOtherParts,
} from "../../../../support/example-cluster-file.ts";
import { failureOf } from "../../../../support/failure-of.ts";
import {
  manifestFor,
  packMemory,
  putTogether,
  sha256,
} from "../../../../support/rewrite-cluster-file.ts";
import { scratchFolder } from "../../../../support/scratch-folder.ts";

const lack = Bun.which("qemu-img") === null ? "no QEMU here" : undefined;
const disk = "master_0/disk.qcow2";
const megabyte = 1024 * 1024;

test.skipIf(lack !== undefined)(
  "a file that another user replaces after its checksum was compared is refused, and nothing is left",
  async () => {
    await using scratch = await scratchFolder();
    const folder = scratch.path;
    const good = await exampleClusterFile(folder);
    const [path, other] = [join(folder, "expected.zst"), join(folder, "other.zst")];
    await writeFile(path, good.bytes);
    await writeFile(
      other,
      withOtherParts(good, { "master_0/memory": packMemory(Buffer.from("hostile memory")) }),
    );
    const paths = [path, path];
    const location = {
      shown: path,
      get path() {
        return paths.pop() ?? other;
      },
    };
    const failure = await failureOf(
      loadClusterFile(folder, { location, sha256: sha256(good.bytes) }),
    );
    expect(failure).toMatchObject({
      id: "snapshot-unusable",
      message: expect.stringContaining("was replaced"),
    });
    expect(paths).toEqual([]);
    expect(await leftOfFiles(folder)).toEqual([]);
  },
);

// Otherwise a stranger's file could put another system below the disks of everybody who opens a file with the same layer later.
test.skipIf(lack !== undefined)(
  "a layer that another file has laid on another image is not used",
  async () => {
    await using scratch = await scratchFolder();
    const folder = scratch.path;
    const { manifest, contents } = await exampleClusterFile(folder);
    const top = contents.get(disk)!;
    const own = await makeDisk(folder, ["-u", "-b", "any", "-F", "qcow2", "PATH", "2M"]);
    const on = async (base: Buffer): Promise<readonly string[]> => {
      const path = join(folder, "layered.zst");
      const [keys, memory, machine] = ["keys.json", "master_0/memory", "master_0/state"].map(
        (name) => contents.get(name)!,
      );
      const parts = new Map(
        Object.entries({
          "keys.json": keys!,
          "layer-0": base,
          "layer-1": top,
          [disk]: own,
          "master_0/memory": memory!,
          "master_0/state": machine!,
        }),
      );
      const layers = [
        { format: "raw", bytes: base.length, sha256: sha256(base) },
        { format: "qcow2", bytes: top.length, sha256: sha256(top), below: 0 },
      ];
      const facts = { ...manifest.facts, layers, below: { [disk]: 1 } };
      await writeFile(
        path,
        putTogether({ ...manifestFor(manifest, parts), facts }, parts.values()),
      );
      const [layer] = await loadClusterFile(folder, { location: { path, shown: path } });
      const info = JSON.parse(await Bun.$`qemu-img info --output=json ${layer}`.text()) as Record<
        string,
        string
      >;
      expect(await readFile(info["full-backing-filename"]!)).toEqual(base);
      return await readdir(join(folder, "cache", "cluster-e2e", "images"));
    };
    await on(Buffer.alloc(megabyte, "a stranger's"));
    const names = await on(Buffer.alloc(megabyte, "a friend's"));
    // An image from the web with that checksum would have this name.
    expect(names).not.toContain(`own-${sha256(top).slice(0, 16)}.img`);
    expect(await on(Buffer.alloc(megabyte, "a friend's"))).toEqual(names);
  },
);
