/** The script that renews a machine's random numbers, on systems with and without what it needs. */
import { chmod, mkdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { freshEntropy, reseedScript } from "../../../src/ssh/reseed.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";

const lack = process.getuid?.() === 0 ? undefined : "only root may reseed";

/** Runs it where only these programs exist, and the kernel says that it has this version. */
async function reseed(programs: readonly string[], version: string) {
  await using folder = await scratchFolder();
  const bin = join(folder.path, "bin");
  await mkdir(bin);
  for (const program of ["sh", "base64", ...programs])
    await symlink(Bun.which(program)!, join(bin, program));
  await Bun.write(join(bin, "uname"), `#!/bin/sh\necho ${version}\n`);
  await chmod(join(bin, "uname"), 0o755);
  const stdin = Buffer.from(`${freshEntropy()}\n`);
  const ran = Bun.spawn(["sh", "-c", reseedScript], { env: { PATH: bin }, stdin, stderr: "pipe" });
  return { stderr: await new Response(ran.stderr).text(), status: await ran.exited };
}

const tools = ["perl", "python3"].filter((program) => Bun.which(program) !== null);

test.skipIf(lack !== undefined).each(tools)(
  `a system with %s renews its random numbers (${lack ?? "here"})`,
  async (program) => {
    expect(await reseed([program], "6.1.0-9-cloud-amd64")).toEqual({ status: 0, stderr: "" });
  },
);

test.skipIf(lack !== undefined).each(["3.10.0-1160.el7.x86_64", "4.4.0-21-generic"])(
  `a kernel that mixes at once needs no program: %s (${lack ?? "here"})`,
  async (version) => {
    expect(await reseed([], version)).toEqual({ status: 0, stderr: "" });
  },
);

const hasDevice =
  [...new Bun.Glob("*/drivers/vmgenid/*:*").scanSync({ cwd: "/sys/bus", onlyFiles: false })]
    .length > 0;
const proofless = lack ?? (hasDevice ? "this computer has a generation id" : undefined);

test.skipIf(proofless !== undefined).each(["4.8.0", "4.18.0-553.el8", "6.12.43+deb13"])(
  `where nothing proves that random numbers are new, it fails: %s (${proofless ?? "here"})`,
  async (version) => {
    expect(await reseed([], version)).toEqual({
      status: 1,
      stderr: expect.stringContaining("would repeat"),
    });
  },
);
