/** The library, built for Node 20. test/e2e/library.test.ts uses it with real machines. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { buildLibrary, forNode20, withoutPackages } from "../../../scripts/build-library.ts";
import { escapePattern, groupBy, withResolvers } from "../../../scripts/library/node-20.ts";

test("replacements of newer language features behave like the originals", async () => {
  const { promise, resolve } = withResolvers<number>();
  resolve(1);
  expect(await promise).toBe(1);
  const { promise: failing, reject } = withResolvers<never>();
  reject(new Error("no"));
  expect(await failing.catch(String)).toBe("Error: no");
  const keyOf = (item: string, index: number): string => `${item.length}${index % 2}`;
  const items = ["a", "bb", "c", "dd", "e"];
  expect([...groupBy(items, keyOf)]).toEqual([...Map.groupBy(items, keyOf)]);
  const all = Array.from({ length: 0x250 }, (_, code) => String.fromCharCode(code)).join("");
  for (const text of [all, "(a|b)*", "1-2", "é/\\"]) {
    expect(text.match(new RegExp(`^(?:${escapePattern(text)})$`, "u"))?.[0]).toBe(text);
  }
});

test("a source that needs Bun or a later Node than 20 is rejected", () => {
  const built = forNode20("system/a.js", "// Bun.which is not asked\nexport const a = Promise.withResolvers();\n", "1");
  expect(built).toBe(
    'import * as node20 from "../node-20.js";\n// Bun.which is not asked\nexport const a = node20.withResolvers();\n',
  );
  expect(forNode20("version.js", "export {};\n", "1.2")).toBe('const CLUSTER_E2E_VERSION = "1.2";\nexport {};\n');
  for (const line of ["Bun.spawn([]);", 'import { $ } from "bun";', "await Array.fromAsync(a);", "import.meta.dir;"]) {
    expect(() => forNode20("ssh/a.js", `let a;\n${line}\n`, "1")).toThrow(
      `ssh/a.js is reached by the library, but not for Node 20:\n${line}`,
    );
  }
});

test("types that depend on those of a package are rejected", () => {
  expect(withoutPackages("a.d.ts", 'import type { A } from "./b.js";\n')).toBe('import type { A } from "./b.js";\n');
  for (const text of [
    'import type { Tag } from "@aws-sdk/client-ec2";',
    'export declare const a: import("ssh2").Client;',
  ]) {
    expect(() => withoutPackages("a.d.ts", text)).toThrow("the library's types lead to the package");
  }
});

const node = Bun.which("node");
if (node === null) console.warn("skipped: there is no Node on the PATH to load the library with");

test.skipIf(node === null)("the built library loads the cloud's SDK only when it is needed", async () => {
  const library = await buildLibrary("0.0.0+test");
  const program = `
    import { createRequire } from "node:module";
    const { Cluster, CloudBackend, ClusterError } = await import(${JSON.stringify(join(library, "index.js"))});
    const { version } = await import(${JSON.stringify(join(library, "version.js"))});
    const backend = new CloudBackend({ region: "us-west-2" });
    const loaded = Object.keys(createRequire(import.meta.url).cache).filter((path) => path.includes("node_modules"));
    console.log(JSON.stringify([Cluster.name, ClusterError.name, backend.distribution, version, loaded]));
  `;
  const child = Bun.spawn([node!, "--input-type=module", "--eval", program], { stdout: "pipe", stderr: "inherit" });
  expect(JSON.parse(await new Response(child.stdout).text())).toEqual([
    "Cluster",
    "ClusterError",
    "centos-7",
    "0.0.0+test",
    [],
  ]);
});
