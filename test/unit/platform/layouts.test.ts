import { expect, test } from "bun:test";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { layoutByInstallScript, layoutNeeds } from "../../../src/platform/layouts/find-layout.ts";
import { layoutOf } from "../../support/layout-of.ts";

test.each([
  ["cluster_install.sh", "cluster"],
  ["dcos_install.sh", "dcos"],
])("%s belongs to the layout %s", (file, name) => {
  expect(layoutByInstallScript(file)?.name as string).toBe(name);
});

test("an unknown install script belongs to none", () => {
  expect(layoutByInstallScript("install.sh")).toBeUndefined();
});

test("only the files of the layouts name one", async () => {
  const source = join(import.meta.dir, "..", "..", "..", "src");
  const paths = await Array.fromAsync(new Bun.Glob("**/*.ts").scan(source));
  const named = /dcos|mesos|layout(\.name)? [!=]== "\w/i;
  const naming: string[] = [];
  for (const path of paths)
    if (named.test(await readFile(join(source, path), "utf8"))) naming.push(path);
  expect(naming.filter((path) => !path.startsWith("platform/layouts/"))).toEqual([]);
  expect(naming).toContain("platform/layouts/dcos.ts");
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
  expect(layoutOf(name).release!.agentsRegistered.count(body)).toBe(count);
});

test.each([
  ["cluster", "docker", false],
  ["dcos", "docker", true],
  ["dcos", "clock-synchronized", true],
] as const)("nodes of the layout %s need the condition %s: %p", (name, condition, isNeeded) => {
  expect(layoutNeeds(layoutOf(name), condition)).toBe(isNeeded);
});

const forRelease = (release: string) =>
  layoutOf("dcos").baseConfiguration({ variant: "enterprise", nodesKeepTime: true, release });

test.each([
  ["1.13.9", {}],
  ["2.0", { exhibitor_tls_enabled: false }],
  ["2.0.0", { exhibitor_tls_enabled: false }],
  ["2.2.1", { exhibitor_tls_enabled: false }],
  ["testing", {}],
])(
  "from 2.0 on, enterprise releases get no certificate authority of their own: %s",
  (release, added) => {
    expect(forRelease(release)).toEqual(added);
  },
);
