/** Which machines have the same template. */
import { expect, test } from "bun:test";
import { chmod, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { architectureOf } from "../../../../../src/backend/vm/qemu/architecture.ts";
import type { Qemu } from "../../../../../src/backend/vm/qemu/qemu.ts";
import { kindOf } from "../../../../../src/backend/vm/templates/machine-kind.ts";
import { parseTemplateName } from "../../../../../src/backend/vm/cluster-facts.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";
import { scratchFolder } from "../../../../support/scratch-folder.ts";

const systemName = "qemu-system-x86_64";

async function openKinds() {
  const folder = await scratchFolder();
  const at = (name: string): string => join(folder.path, name);
  for (const name of ["image", systemName]) await writeFile(at(name), "");
  await chmod(at(systemName), 0o755);
  const environment = { PATH: `/nowhere:${folder.path}` };
  const nameOf = async ({
    accelerator = "tcg",
    translatedCpu = "max",
    version = "7.2.22",
    options = {},
    path = environment.PATH,
  } = {}) => {
    const qemu = {
      architecture: { ...architectureOf("x64"), translatedCpu },
      systemName,
      system: async () => ({ status: 0, stdout: `QEMU emulator version ${version}`, stderr: "" }),
    } as unknown as Qemu;
    const kind = {
      options: { memoryMegabytes: 256, cpus: 1, diskMegabytes: 1024, ...options },
      accelerator: accelerator as "kvm" | "tcg",
      firmware: undefined,
      image: { path: at("image"), format: "raw", sizeBytes: 1 },
    } as const;
    return (await kindOf(qemu, kind, { PATH: path }, neverAborted)).name;
  };
  return { at, nameOf, [Symbol.asyncDispose]: folder[Symbol.asyncDispose] };
}

test("the same machines have the same name, and others have others", async () => {
  await using kinds = await openKinds();
  const usual = await kinds.nameOf();
  expect(parseTemplateName(usual)).toBe(usual);
  expect(await kinds.nameOf()).toBe(usual);
  const others = [
    { accelerator: "kvm" },
    { version: "7.2.23" },
    { options: { memoryMegabytes: 512 } },
    { options: { cpus: 2 } },
    { options: { cpuModel: "Nehalem" } },
    { options: { diskMegabytes: 2048 } },
    { path: "/nowhere" },
  ];
  const names = await Promise.all(others.map(kinds.nameOf));
  expect(new Set([usual, ...names]).size).toBe(others.length + 1);
});

test.each(["image", systemName])(
  "whoever touches the file %s gets another template",
  async (name) => {
    await using kinds = await openKinds();
    const before = await kinds.nameOf();
    await utimes(kinds.at(name), 1, 1);
    expect(await kinds.nameOf()).not.toBe(before);
  },
);

test("a file that is no program isn't QEMU, whatever its name", async () => {
  await using kinds = await openKinds();
  await chmod(kinds.at(systemName), 0o644);
  expect(await kinds.nameOf()).toBe(await kinds.nameOf({ path: "/nowhere" }));
});

test("the emulated processor matters to translated machines only", async () => {
  await using kinds = await openKinds();
  expect(await kinds.nameOf({ translatedCpu: "qemu64" })).not.toBe(await kinds.nameOf());
  const accelerator = "kvm";
  expect(await kinds.nameOf({ accelerator, translatedCpu: "qemu64" })).toBe(
    await kinds.nameOf({ accelerator }),
  );
});
