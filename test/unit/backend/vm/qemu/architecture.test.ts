/** The table of the processors that machines can have. */
import { expect, test } from "bun:test";
import { architectureOf } from "../../../../../src/backend/vm/qemu/architecture.ts";
import { failureOf } from "../../../../support/failure-of.ts";

test.each([
  ["x64", { name: "x86_64", debianName: "amd64", machine: "q35", firmware: "BIOS" }],
  ["arm64", { name: "aarch64", debianName: "arm64", machine: "virt", firmware: "UEFI" }],
] as const)("%s has a machine and a firmware of its own", (name, expected) => {
  expect(architectureOf(name)).toMatchObject(expected);
});

test.each(["ia32", "riscv64", ""])("%j is refused, with what is supported", async (name) => {
  const failure = await failureOf(Promise.try(() => architectureOf(name)));
  expect(failure).toMatchObject({ id: "machine-not-set-up", facts: { architecture: name } });
});
