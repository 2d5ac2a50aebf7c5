/** A file stays the same one when this computer starts again, and its disk gets another number. */
import { mkdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { identityOf } from "../../../../../src/backend/vm/images/image-verification.ts";
import { scratchFolder } from "../../../../support/scratch-folder.ts";

const attempt = `file=$(mktemp) && trap 'rm "$file"' EXIT && truncate -s 1M "$file" &&
loop=$(losetup --find --show "$file") && losetup --detach "$loop"`;
const canAttach = Bun.spawnSync(["sh", "-c", attempt], { stderr: "ignore" }).success;
const lack = canAttach ? "here" : "no loop devices for this user";

test.skipIf(!canAttach)(
  `a file's identity is the same on a disk with another number (${lack})`,
  async () => {
    await using folder = await scratchFolder();
    const [disk, at] = [join(folder.path, "disk"), join(folder.path, "at")];
    await mkdir(at);
    await Bun.$`truncate -s 4M ${disk} && mkfs.ext4 -q ${disk}`.quiet();
    const loops: string[] = [];
    for (let count = 0; count < 2; count += 1)
      loops.push((await Bun.$`losetup --find --show ${disk}`.text()).trim());
    try {
      const file = join(at, "image");
      const [one, other] = [loops[0]!, loops[1]!];
      await Bun.$`mount ${one} ${at}`;
      await writeFile(file, "contents");
      const before = [(await stat(file)).dev, await identityOf(file)];
      await Bun.$`umount ${at} && mount ${other} ${at}`;
      const after = [(await stat(file)).dev, await identityOf(file)];
      expect(after[0]).not.toBe(before[0]);
      expect(after[1]).toBe(before[1]);
    } finally {
      await Bun.$`umount ${at}`.nothrow().quiet();
      for (const loop of loops) await Bun.$`losetup --detach ${loop}`.nothrow().quiet();
    }
  },
);
