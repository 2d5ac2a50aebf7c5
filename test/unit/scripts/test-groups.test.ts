import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { groupTests, longestFirst, longFiles, slowModules } from "../../../scripts/test-groups.ts";

const root = join(import.meta.dir, "..", "..", "..");
const filesOf = async (tier: string): Promise<readonly string[]> =>
  await Array.fromAsync(new Bun.Glob(`test/${tier}/**/*.test.ts`).scan(root));
const textOf = async (file: string): Promise<string> => await readFile(join(root, file), "utf8");

/** Tests that run a QEMU without any system in it, for a second or two. */
const emptyQemus = [
  "machines/forwards",
  "machines/name-server",
  "machines/offline-network",
  "machines/private-network",
  "qemu/accelerator",
  "qemu/monitor",
  "qemu/x86-probe",
].map((name) => `test/integration/backend/vm/${name}.test.ts`);

test("the files that take minutes are found", async () => {
  const { slow, busy } = await groupTests(await filesOf("e2e"));
  for (const name of ["vm-flow", "vm-platforms", "container-cgroup2"])
    expect(busy).toContain(`test/e2e/${name}.test.ts`);
  for (const name of ["release", "node-recipe", "dcos", "dcos-releases"])
    expect(slow.has(`test/e2e/${name}.test.ts`)).toBe(true);
  for (const name of ["main-flow", "container-flow", "enterprise"])
    expect(slow.has(`test/e2e/${name}.test.ts`)).toBe(false);
  expect(
    (await groupTests([...(await filesOf("unit")), ...(await filesOf("faults"))])).slow.size,
  ).toBe(0);
});

test("an integration test with a real QEMU is slow, or runs nothing in it", async () => {
  const files = await filesOf("integration");
  const { slow } = await groupTests(files);
  const real = await Promise.all(files.map(async (file) => ({ file, text: await textOf(file) })));
  const found = real.filter(
    ({ text }) => /Bun\.which\(/.test(text) && /qemu-system|systemName/.test(text),
  );
  expect(
    found
      .map(({ file }) => file)
      .filter((file) => !slow.has(file))
      .toSorted(),
  ).toEqual(emptyQemus);
});

/** What starts a script that takes minutes. */
const slowStart =
  /test\/vm-image\/|machine-image\/(?:newer-engines|published-debian|with-packages)|"test\/dcos-platform"|\brun release --/;

test("only slow modules and slow tests start the scripts that make disk images, node images and releases", async () => {
  const glob = new Bun.Glob("test/{e2e,integration,faults,support}/**/*.ts");
  const files = await Array.fromAsync(glob.scan(root));
  const texts = await Promise.all(files.map(async (file) => ({ file, text: await textOf(file) })));
  const starting = texts.filter(({ text }) => slowStart.test(text)).map(({ file }) => file);
  expect(starting).toContain("test/e2e/support/test-vms.ts");
  const { slow } = await groupTests(starting);
  expect(starting.filter((file) => !(file in slowModules) && !slow.has(file))).toEqual([]);
});

test("files that take long begin first, and all of them exist", async () => {
  expect(longFiles.filter((file) => !existsSync(join(root, file)))).toEqual([]);
  const some = ["test/e2e/help.test.ts", "test/e2e/release.test.ts", "test/e2e/dcos.test.ts"];
  expect(longestFirst(some)).toEqual([some[1]!, some[2]!, some[0]!]);
});
