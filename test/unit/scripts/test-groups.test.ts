import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { groupTests, longestFirst, longFiles } from "../../../scripts/test-groups.ts";

const root = join(import.meta.dir, "..", "..", "..");
const filesOf = async (tier: string): Promise<readonly string[]> =>
  await Array.fromAsync(new Bun.Glob(`test/${tier}/**/*.test.ts`).scan(root));
const textOf = async (file: string): Promise<string> => await readFile(join(root, file), "utf8");

/** Tests that run a QEMU without any system in it, for a second or two. */
const emptyQemus = ["engine", "monitor", "private-network"].map(
  (name) => `test/integration/backend/vm/${name}.test.ts`,
);

test("the files that take minutes are found", async () => {
  const { slow, busy } = await groupTests(await filesOf("e2e"));
  for (const name of ["vm-flow", "vm-enterprise", "container-cgroup2"])
    expect(busy).toContain(`test/e2e/${name}.test.ts`);
  for (const name of ["release", "node-recipe", "dcos-releases"])
    expect(slow.has(`test/e2e/${name}.test.ts`)).toBe(true);
  for (const name of ["main-flow", "podman-flow", "dcos"]) expect(slow.has(`test/e2e/${name}.test.ts`)).toBe(false);
  expect((await groupTests([...(await filesOf("unit")), ...(await filesOf("faults"))])).slow.size).toBe(0);
});

test("an integration test with a real QEMU is slow, or runs nothing in it", async () => {
  const files = await filesOf("integration");
  const { slow } = await groupTests(files);
  const real = await Promise.all(files.map(async (file) => ({ file, text: await textOf(file) })));
  const found = real.filter(({ text }) => /Bun\.which\(/.test(text) && /qemu-system|systemName/.test(text));
  expect(
    found
      .map(({ file }) => file)
      .filter((file) => !slow.has(file))
      .toSorted(),
  ).toEqual(emptyQemus);
});

test.each(["test/vm-image/build", "test/machine-image/published-debian"])(
  "%s refuses to run in a quick run, so that no test starts it there",
  async (script) => {
    const environment = { PATH: process.env["PATH"] ?? "", HOME: "/nowhere", CLUSTER_E2E_QUICK: "1" };
    const words = script.endsWith("debian") ? ["12"] : [];
    const child = Bun.spawn([join(root, script), ...words], { env: environment, stdout: "pipe", stderr: "pipe" });
    expect(await child.exited).toBe(5);
    expect(await new Response(child.stderr).text()).toContain("only ./scripts/test all");
  },
);

test("files that take long begin first, and all of them exist", async () => {
  expect(longFiles.filter((file) => !existsSync(join(root, file)))).toEqual([]);
  const some = ["test/e2e/help.test.ts", "test/e2e/release.test.ts", "test/e2e/dcos.test.ts"];
  expect(longestFirst(some)).toEqual([some[1]!, some[2]!, some[0]!]);
});
