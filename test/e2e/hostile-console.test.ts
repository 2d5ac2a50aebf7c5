/** A machine writes to its console without end. It must not fill the disk of the computer that it runs on. */
import { expect, test } from "bun:test";
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { startTestVms } from "./support/test-vms.ts";

const missing = Bun.which("qemu-system-x86_64") === null ? "no qemu-system-x86_64 here" : undefined;
const mostBytes = 4_000_000;

/** Boots, and writes "A" to the first serial port forever: mov dx, 0x3f8; mov al, 'A'; again: out dx, al; jmp again. */
function floodingDisk(): Uint8Array {
  const disk = new Uint8Array(1_048_576);
  disk.set([0xba, 0xf8, 0x03, 0xb0, 0x41, 0xee, 0xeb, 0xfd]);
  disk.set([0x55, 0xaa], 510);
  return disk;
}

/** How much a process has written to files, pipes and sockets. */
const writtenBy = async (pid: number): Promise<number> =>
  Number(/^wchar: ([0-9]+)$/m.exec(await readFile(`/proc/${pid}/io`, "utf8"))?.[1]);

test.skipIf(missing !== undefined || process.platform !== "linux")(
  `a console keeps 4 MB of each machine at most (${missing ?? "here"})`,
  async () => {
    await using vms = await startTestVms();
    const id = vms.id("flood");
    const [image, artifact] = [join(vms.folder, "flood.img"), join(vms.folder, "idle.sh")];
    await Bun.write(image, floodingDisk());
    await Bun.write(artifact, "#!/bin/bash\n# variant: oss\n");
    const options =
      "--variant oss --masters 1 --agents 0 --public-agents 0 --memory 256 --cpus 1 --disk-size 1g --accelerator tcg";
    const creating = vms.start([
      "create",
      "-v",
      "--fresh-boot",
      ...options.split(" "),
      "--image",
      image,
      "-c",
      id,
      artifact,
    ]);
    await creating.said("Start virtual machines: done");
    const pid = (await vms.machines(id)).get("master_0")!;
    const written = await writtenBy(pid);
    while ((await writtenBy(pid)) < written + mostBytes * 1.5) await Bun.sleep(200);
    const names = (await readdir(vms.stateFolder, { recursive: true })).filter((name) =>
      /console[^/]*$/.test(name),
    );
    const sizes = await Promise.all(
      names.map(async (name) => (await stat(join(vms.stateFolder, name))).size),
    );
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(mostBytes);
    const logs = join(vms.folder, "logs");
    await vms.run(["logs", "-c", id, "--output-dir", logs]);
    expect(await readFile(join(logs, "master_0.console.txt"), "utf8")).toEndWith(
      "A".repeat(900_000),
    );
    creating.interrupt("SIGINT");
    await creating.ended;
    expect((await vms.machines(id)).size).toBe(0);
  },
);
