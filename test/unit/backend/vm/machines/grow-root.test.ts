import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "bun:test";
import growRootFile from "../../../../../src/backend/vm/machines/grow-root.sh" with { type: "text" };
import { scratchFolder } from "../../../../support/scratch-folder.ts";
import { shellText } from "../../../../../src/ssh/shell-text.ts";

interface Node {
  readonly type: string;
  /** LVM's blocks that no volume uses, after the physical volumes have grown. */
  readonly free?: string;
}

/** Runs the script on a node whose root is on a physical volume in the second partition of vda, and another that is a whole disk. */
async function grow({ type, free = "0" }: Node): Promise<readonly string[]> {
  await using folder = await scratchFolder();
  const blocks = join(folder.path, "class");
  for (const path of ["devices/vda/vda2", "devices/vdb"])
    await mkdir(join(folder.path, path), { recursive: true });
  await writeFile(join(folder.path, "devices/vda/vda2/partition"), "2\n");
  await mkdir(blocks);
  await symlink("../devices/vda/vda2", join(blocks, "vda2"));
  await symlink("../devices/vdb", join(blocks, "vdb"));
  const node = `
findmnt() { echo /dev/mapper/system-root; }
lsblk() { echo ${type}; }
lvs() { echo '  system'; }
pvs() { printf '  /dev/vda2\\n  /dev/vdb\\n'; }
vgs() { echo '  ${free}'; }
growpart() { echo "growpart $*"; return 1; }
pvresize() { echo "pvresize $*"; }
lvextend() { echo "lvextend $*"; }
`;
  const script = shellText(growRootFile).replaceAll("/sys/class/block", blocks);
  return (await Bun.$`sh -c ${node + script}`.text()).trim().split("\n");
}

test("a root on LVM gets the whole disk, and what it has already is no error", async () => {
  const volumes = ["growpart /dev/vda 2", "pvresize /dev/vda2", "pvresize /dev/vdb"];
  expect(await grow({ type: "lvm", free: "1023" })).toEqual([
    ...volumes,
    "lvextend --resizefs --extents +100%FREE /dev/mapper/system-root",
  ]);
  expect(await grow({ type: "lvm" })).toEqual(volumes);
});

test("other roots are left to cloud-init", async () => {
  expect(await grow({ type: "part", free: "1023" })).toEqual([""]);
});
