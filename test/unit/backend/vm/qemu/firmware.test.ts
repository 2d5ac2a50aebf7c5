import { expect, test } from "bun:test";
import { architectureOf } from "../../../../../src/backend/vm/qemu/architecture.ts";
import { parseDescription } from "../../../../../src/backend/vm/qemu/firmware.ts";

/** As edk2's packages describe it. */
const description = (more: object = {}) => ({
  mapping: {
    device: "flash",
    executable: { filename: "/fw/code.fd", format: "raw" },
    "nvram-template": { filename: "/fw/vars.qcow2", format: "qcow2" },
  },
  targets: [{ architecture: "aarch64", machines: ["virt-*"] }],
  features: ["verbose-static"],
  ...more,
});

test("firmware is taken from its description", () => {
  const arm64 = architectureOf("arm64");
  expect(parseDescription(JSON.stringify(description()), arm64)).toEqual({
    program: { path: "/fw/code.fd", format: "raw" },
    variables: { path: "/fw/vars.qcow2", format: "qcow2" },
  });
  const unfit = [
    { features: ["secure-boot"] },
    { targets: [{ architecture: "x86_64", machines: ["pc-q35-*"] }] },
    { targets: "aarch64" },
    { mapping: { device: "memory", filename: "/fw/code.fd" } },
    { mapping: { device: "flash", executable: { filename: "/fw/code.fd", format: "raw" } } },
  ];
  for (const more of unfit)
    expect(parseDescription(JSON.stringify(description(more)), arm64)).toBeUndefined();
  expect(parseDescription("{", arm64)).toBeUndefined();
});
