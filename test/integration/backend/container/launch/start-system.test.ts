/** The beginning of start-system.sh, which decides whether a node starts at all. */
import { describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import startSystem from "../../../../../src/backend/container/launch/start-system.sh" with { type: "text" };
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
});
