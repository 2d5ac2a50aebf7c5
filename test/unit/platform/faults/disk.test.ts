/** The file system that a container shares with this computer: its memory must not run out. */
import { expect, test } from "bun:test";
import { stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { shellText } from "../../../../src/ssh/shell-text.ts";
import diskFile from "../../../../src/platform/faults/disk.sh" with { type: "text" };
import { scratchFolder } from "../../../support/scratch-folder.ts";

const megabyte = 1024 * 1024;

/** Begins to fill a tmpfs in which so much is free. Resolves with what the script says. */
async function begin(free: number, sharers: number, isFilled = false): Promise<string> {
  await using scratch = await scratchFolder();
  if (isFilled) {
    const file = join(scratch.path, ".cluster-e2e-fault-b0000000");
    await Bun.write(file, "filled");
    await Bun.write(
      join(scratch.path, "cluster-e2e-fault-b0000000.conf"),
      `r! ${file}\nr! ${scratch.path}/rule\n`,
    );
  }
  const script = `
${shellText(diskFile, { ID: "0123abcd", FILL: scratch.path, LEAVE: 0, SHARED: sharers === 0 ? "" : sharers })}
rule=${join(scratch.path, "rule")}
fail() { echo "$*"; exit 1; }
stat() { if [ "$3" = %T ]; then echo tmpfs; else echo ${free}; fi; }
fill() { echo filled | tee "$file"; }
begin`;
  return await new Response(Bun.spawn(["sh", "-c", script]).stdout).text();
}

test.each([
  ["sh", 'command fallocate "$@"'],
  ["bash", 'command fallocate "$@"'],
  ["sh", "return 1"],
])(
  "%s: a service that puts a link in the file's place while it grows (%s) leads nothing elsewhere",
  async (shell, grow) => {
    await using scratch = await scratchFolder();
    const elsewhere = join(scratch.path, "elsewhere");
    await writeFile(elsewhere, "a file of root's");
    const script = `
${shellText(diskFile, { ID: "0123abcd", FILL: scratch.path, LEAVE: 0, SHARED: "" })}
rule=${join(scratch.path, "rule")}
spare() { echo $((65536 - $(allocated))); }
allocated() { command stat -L -c %s /proc/self/fd/9 2>/dev/null || echo 0; }
fallocate() {
  [ -L "$file" ] || { mv "$file" "$file.aside" && ln -s ${elsewhere} "$file"; }
  ${grow}
}
begin`;
    expect(await Bun.spawn([shell, "-c", script]).exited).toBe(0);
    expect(await Bun.file(elsewhere).text()).toBe("a file of root's");
    const grown = await stat(join(scratch.path, ".cluster-e2e-fault-0123abcd.aside"));
    expect([grown.size, grown.mode & 0o777]).toEqual([65_536, 0o600]);
  },
);

test.each([
  ["a small one", 16 * megabyte, 1, /^filled\n$/],
  [
    "one without a size of its own, which has half of the memory",
    2 ** 50,
    1,
    /memory .* mount a smaller tmpfs/i,
  ],
  ["small ones on too many nodes", 16 * megabyte, 10_000_000, /memory/],
  ["the disk of a node that has its own", 2 ** 50, 0, /^filled\n$/],
])("%s", async (_, free, sharers, said) => {
  expect(await begin(free, sharers)).toMatch(said);
});

test("a file system that another fault fills is refused: the end of one would be that of both", async () => {
  expect(await begin(16 * megabyte, 0, true)).toMatch(/is filled by another fault already\n$/);
});
