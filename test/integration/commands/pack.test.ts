/** `pack`, as users run it. */
import { expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { mkdir, readFile, realpath, stat } from "node:fs/promises";
import { join } from "node:path";
import { writePlatform } from "../../support/platform-folder.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";

const program = join(import.meta.dir, "../../../src/bin/cluster-container.ts");

async function pack(cwd: string, ...words: readonly string[]) {
  const env = { PATH: process.env["PATH"], HOME: cwd, COLUMNS: "10000" };
  const child = Bun.spawn([process.execPath, program, "pack", ...words], {
    cwd,
    env,
    stdout: "pipe",
    stderr: "pipe",
  });
  const [status, stdout, stderr] = await Promise.all([
    child.exited,
    child.stdout.text(),
    child.stderr.text(),
  ]);
  return { status, stdout, stderr };
}

async function platformIn(
  parent: string,
  changes: Readonly<Record<string, string>> = {},
): Promise<string> {
  await writePlatform(join(parent, "small"), changes);
  await mkdir(join(parent, "here"));
  return join(await realpath(parent), "here");
}

test("it prints the file's path on stdout, and facts about it on stderr", async () => {
  await using scratch = await scratchFolder();
  const here = await platformIn(scratch.path, {
    "platform.yaml": 'name: small\nversion: "1.0/é 2"\n',
  });
  const file = join(here, "small-1.0___2.sh");
  const { status, stdout, stderr } = await pack(here, "../small");
  const sha256 = createHash("sha256")
    .update(await readFile(file))
    .digest("hex");
  const { size } = await stat(file);
  const note = `Packed small 1.0/é 2: ${size} bytes, SHA-256 ${sha256}.\n`;
  expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: `${file}\n`, stderr: note });
  const json = await pack(here, "../small", "--output-file", "a.sh", "--output", "json");
  const data = { name: "small", version: "1.0/é 2", sizeBytes: size, sha256 };
  expect(JSON.parse(json.stdout)).toEqual({ schemaVersion: 1, file: join(here, "a.sh"), ...data });
});

test("it reports every problem of the folder at once", async () => {
  await using scratch = await scratchFolder();
  const here = await platformIn(scratch.path, {
    "platform.yaml": "name: small\nversion: 1.0\n",
    install: "",
  });
  const { status, stdout, stderr } = await pack(here, "../small");
  const folder = join(here, "../small");
  expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
  expect(stderr).toContain(
    [
      "Error: 2 problems:",
      `  ${folder}/platform.yaml: version: must be a text, not 1; put it in quotes`,
      `  ${folder}/install: is empty`,
    ].join("\n"),
  );
  expect(stderr).toEndWith("\n[bad-usage]\n");
});

test("in the platform's own folder it says so", async () => {
  await using scratch = await scratchFolder();
  await platformIn(scratch.path);
  const { status, stderr } = await pack(join(scratch.path, "small"), ".");
  expect({ status, stderr }).toEqual({
    status: 2,
    stderr: expect.stringContaining("Pass a file outside of that folder."),
  });
});
