import { expect, test } from "bun:test";
import { layoutByInstallScript, layoutOf, layouts } from "../../../src/platform/layouts/find-layout.ts";

test.each([
  ["cluster_install.sh", "cluster"],
  ["dcos_install.sh", "dcos"],
])("%s belongs to the layout %s", (file, name) => {
  expect(layoutByInstallScript(file)?.name as string).toBe(name);
});

test("an unknown install script belongs to none", () => {
  expect(layoutByInstallScript("install.sh")).toBeUndefined();
});

test("layouts are found by their names", () => {
  expect(layouts.map((layout) => layoutOf(layout.name))).toEqual([...layouts]);
});

test.each([
  ["cluster", { variant: "oss" }, "oss"],
  ["cluster", { variant: "enterprise" }, "enterprise"],
  ["cluster", { variant: "toString" }, undefined],
  ["cluster", {}, undefined],
  ["dcos", { "dcos-variant": "open" }, "oss"],
  ["dcos", { "dcos-variant": "enterprise" }, "enterprise"],
  ["dcos", { "dcos-variant": "toString" }, undefined],
  ["dcos", { variant: "oss" }, undefined],
] as const)("the %s version file %j tells %p", (name, body, variant) => {
  expect(layoutOf(name).installedVariant(body)).toBe(variant);
});

test.each([
  ["cluster", [{}, {}], 2],
  ["cluster", [], 0],
  ["cluster", { error: "down" }, 0],
  ["cluster", null, 0],
  ["dcos", { slaves: [{}, {}, {}] }, 3],
  ["dcos", { slaves: null }, 0],
  ["dcos", "down", 0],
] as const)("of the %s answer %j the registered agents are %p", (name, body, count) => {
  expect(layoutOf(name).agentsRegistered.count(body)).toBe(count);
});
