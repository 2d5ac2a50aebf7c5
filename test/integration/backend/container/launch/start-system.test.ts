/** The parts of start-system.sh that decide whether a node starts at all, and what it can do to this computer. */
import { describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import startSystem from "../../../../../src/backend/container/launch/start-system.sh" with { type: "text" };
import { noteEnd } from "../../../../../src/backend/container/launch/self-reboot.ts";
import { shellText } from "../../../../../src/ssh/shell-text.ts";
import { runShell } from "../../../../support/prepare-machine.ts";
import { scratchFolder } from "../../../../support/scratch-folder.ts";

const [beginning = ""] = startSystem.split("# Unless the container");

async function machine() {
  const folder = await scratchFolder();
  const ran = join(folder.path, "ran");
  const wanted = join(folder.path, "wanted");
  return {
    /** Whether the node goes on. */
    start: async (container = "docker") => {
      const environment = { PATH: process.env["PATH"]!, container };
      const script = `${shellText(beginning, { STATE: folder.path })}\necho goes on\n`;
      const { status, stdout, stderr } = await runShell(["sh"], script, environment);
      expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
      return stdout === "goes on\n";
    },
    change: async (how: (text: string) => string) =>
      Bun.write(ran, how(await Bun.file(ran).text())),
    want: async () => Bun.write(wanted, ""),
    /** As systemd does it at the end of a node. */
    end: async (how: string) =>
      runShell(["sh", "-es", how], noteEnd.text.replace(/^STATE=.*$/m, `STATE=${folder.path}`), {
        PATH: process.env["PATH"]!,
      }),
    isWanted: () => existsSync(wanted),
    [Symbol.asyncDispose]: async () => folder[Symbol.asyncDispose](),
  };
}

const otherBoot = (text: string): string =>
  text.replace(/\S+\n$/, "00000000-0000-0000-0000-000000000000\n");
const otherContainer = (text: string): string =>
  `/other overlay ${text.trim().split(" ").at(-1)}\n`;

describe("a node", () => {
  test("starts for the first time, and again while this computer runs", async () => {
    await using node = await machine();
    for (const _ of [1, 2, 3]) expect(await node.start()).toBe(true);
  });

  test("does not start by itself after this computer has restarted, but as soon as somebody wants it", async () => {
    await using node = await machine();
    await node.start();
    await node.change(otherBoot);
    await node.want();
    expect(await node.start()).toBe(true);
    expect(node.isWanted()).toBe(false);
    await node.change(otherBoot);
    expect(await node.start()).toBe(false);
    expect(await node.start()).toBe(true);
  });

  test("starts in a container of a snapshot, whenever that was made", async () => {
    await using node = await machine();
    await node.start();
    await node.change((text) => otherBoot(otherContainer(text)));
    expect(await node.start()).toBe(true);
  });

  test("starts under an engine that starts none by itself", async () => {
    await using node = await machine();
    await node.start("podman");
    await node.change(otherBoot);
    expect(await node.start("podman")).toBe(true);
  });

  test.each([
    ["exit", true],
    ["reboot", true],
    ["poweroff", false],
    ["halt", false],
  ])(
    "that ended with %s by force starts by itself: %p; as soon as somebody wants it, it does",
    async (how, starts) => {
      await using node = await machine();
      await node.start();
      expect(await node.end(how)).toEqual({ status: 0, stdout: "", stderr: "" });
      expect(await node.start()).toBe(starts);
      expect(await node.start()).toBe(true);
      await node.end(how);
      await node.want();
      expect(await node.start()).toBe(true);
      expect(await node.start()).toBe(true);
      await node.end(how);
      expect(await node.start("podman")).toBe(true);
    },
  );

  test("can't reboot this computer with a file of the kernel", async () => {
    await using folder = await scratchFolder();
    const sysrq = join(folder.path, "sysrq-trigger");
    const [, protection = ""] = /^(sysrq=[^]*?)\n\n/m.exec(startSystem) ?? [];
    const script = `mount() { echo "$@"; }\n${protection.replace("/proc/sysrq-trigger", sysrq)}`;
    const start = async () => runShell(["sh", "-e"], script, { PATH: process.env["PATH"]! });
    expect(await start()).toEqual({ status: 0, stdout: "", stderr: "" });
    await Bun.write(sysrq, "");
    expect((await start()).stdout).toBe(`--bind ${sysrq} ${sysrq}\n-o remount,bind,ro ${sysrq}\n`);
  });

  test("whose engine gives no loop devices has no files in their places", async () => {
    await using folder = await scratchFolder();
    const [, devices = ""] = /^(control=[^]*?\nfi)\n/m.exec(startSystem) ?? [];
    const script = `mknod() { false; }\n${devices.replaceAll("/dev/loop", `${folder.path}/loop`)}`;
    const started = await runShell(["sh"], script, { PATH: process.env["PATH"]! });
    expect(started).toEqual({ status: 0, stdout: "", stderr: "" });
    expect(await readdir(folder.path)).toEqual([]);
  });
});
