/** What scripts/structure.ts counts. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { parseFlows, readFlows } from "../../../scripts/structure/flows.ts";
import {
  cyclesOf,
  resolveImports,
  upwardImports,
} from "../../../scripts/structure/import-graph.ts";
import { readModule } from "../../../scripts/structure/read-module.ts";
import { systemTemporaryFolder } from "../../../src/system/files/private-file.ts";
import { type Measures, measureSources } from "../../../scripts/structure/measure.ts";
import { missedGoals, structureTable } from "../../../scripts/structure/table.ts";

test("functions of TypeScript are counted however they are written, one-liners and bare signatures not", () => {
  const text = `
    export function declared(): void {
      // } one
    }
    const arrow = (given: string) =>
      given.trim();
    const short = () => "function () {\\n}";
    declare function signature(
      given: string,
    ): void;
    class Holder {
      method() {
        return [1].map(function (each) {
          return each;
        });
      }
    }`;
  expect(readModule("a.ts", text).functionLengths).toEqual([3, 2, 5, 3]);
});

test("imports are what is imported, re-exported, or loaded later, types included", () => {
  const text = `
    import type { A } from "./a.ts";
    import { b, type B } from "./b.ts";
    import "./c.ts";
    export * from "./d.ts";
    export { e } from "./e.ts";
    type F = import("./f.ts").F;
    const g = async () => await import("./g.ts");
    // import { x } from "./x.ts";
    const text = 'import { y } from "./y.ts"';
    export const own = import(text);
    import { again } from "./b.ts";`;
  expect(readModule("z.ts", text).specifiers.toSorted()).toEqual(
    ["a", "b", "c", "d", "e", "f", "g"].map((name) => `./${name}.ts`),
  );
});

test("what cannot be parsed is named, not counted", () => {
  expect(() => readModule("broken.ts", "export function {")).toThrow("broken.ts cannot be parsed");
});

test("tokens are counted without comments; a text is one", () => {
  const text = '// no\nconst a = `x ${b} y`; /* no */ a.b?.("c d", /e f/) ?? 1;';
  expect(readModule("a.ts", text).tokens).toBe(19);
  expect(readModule("a.ts", "export const a = 1;\nexport { b, c };").exports).toBe(3);
});

const module = (path: string, ...specifiers: readonly string[]) => ({ path, specifiers });

test("an import leads to the file that it means", () => {
  const graph = resolveImports([
    module("src/a.ts", "./b.ts", "./c/d.ts", "./e.sh", "../lib/x.ts", "node:fs", "b"),
    module("src/b.ts"),
    module("src/c/d.ts", "../a.ts"),
  ]);
  expect(graph.get("src/a.ts")).toEqual(["src/b.ts", "src/c/d.ts"]);
  expect(graph.get("src/c/d.ts")).toEqual(["src/a.ts"]);
});

test("a cycle is a group of files that import each other, however far around", () => {
  const graph = new Map([
    ["a", ["b"]],
    ["b", ["c"]],
    ["c", ["a", "d"]],
    ["d", ["e"]],
    ["e", ["d"]],
    ["f", ["a"]],
    ["g", ["g"]],
  ]);
  expect(cyclesOf(graph)).toEqual([
    ["a", "b", "c"],
    ["d", "e"],
  ]);
});

test("an import of a higher layer is found", () => {
  const graph = new Map([
    ["src/commands/run.ts", ["src/cluster/run.ts", "src/errors.ts"]],
    ["src/cluster/run.ts", ["src/cluster/node.ts", "src/commands/run.ts"]],
    ["src/errors.ts", ["src/model/node.ts"]],
  ]);
  expect(upwardImports(graph)).toEqual([
    "src/cluster/run.ts → src/commands/run.ts",
    "src/errors.ts → src/model/node.ts",
  ]);
});

test("flows are read from their lists, each file once", () => {
  const text = "# A\n\n1. `no.ts`\n\n### Follow `run` home\n\nFrom the top:\n\n1. `a.ts`: starts, see `x.ts`\n2. `b.ts`\n3. `a.ts`, again\n\n### Follow on\n\n1. `c.ts`\n\n## More\n\n1. `no.ts`\n"; // prettier-ignore
  expect(parseFlows(text)).toEqual([
    { title: "`run` home", files: ["a.ts", "b.ts"] },
    { title: "on", files: ["c.ts"] },
  ]);
});

test("this project's flows lead through files that are there", async () => {
  const root = join(import.meta.dir, "..", "..", "..");
  const flows = await readFlows(root);
  expect(flows.map(({ title }) => title)).toContain("`run hostname`");
  for (const path of flows.flatMap(({ files }) => files))
    expect([path, await Bun.file(join(root, path)).exists()]).toEqual([path, true]);
});

const measures: Measures = {
  tokens: 400,
  lines: 55,
  bytes: 2222,
  relativeImports: 20,
  exports: 30,
  modules: 10,
  namedTypes: 7,
  fileLengths: Array.from({ length: 10 }, (_, index) => index + 1),
  functionLengths: [3],
  mostFilesInFolder: 4,
  flows: [{ title: "x", files: ["a"] }],
  imports: { shortWithOneImporter: ["c"], cycles: [["a", "b"]], upward: ["a → b"] },
  contractMembers: 29,
};

test("the table has the figures and the goals", () => {
  expect(structureTable(measures)).toBe(
    [
      "|  | this project | goal |",
      "| --- | --- | --- |",
      "| tokens without comments | 400 | ≤ 350000 |",
      "| bytes per line | 40.4 | ≤ 40 |",
      "| relative imports / exports per file | 2 / 3 | ≤ 6 / 4 |",
      "| named types | 7 | ≤ 700 |",
      "| function length p50 / p90 / max | 3 / 3 / 3 | ≤ 7 / 20 / 60 |",
      "| longest file | 10 | ≤ 400 |",
      "| most files in one folder | 4 | ≤ 20 |",
      "| files under 40 lines with one importer | 1 |  |",
      "| members of the backend's contract | 29 | ≤ 28 |",
      "| import cycles | 1 | ≤ 0 |",
      "| upward imports | 1 | ≤ 0 |",
      "| files to open to follow x | 1 |  |",
    ].join("\n"),
  );
});

test("missed goals are listed", () => {
  expect(missedGoals(measures)).toEqual([
    "bytes per line",
    "members of the backend's contract",
    "import cycles",
    "upward imports",
  ]);
  const better = { ...measures.imports, upward: [] };
  expect(missedGoals({ ...measures, bytes: 55, contractMembers: 28, imports: better })).toEqual([
    "import cycles",
  ]);
});

test("a short file with one importer is counted, and the members of the contract", async () => {
  await using folder = await systemTemporaryFolder();
  const files = {
    "src/backend/contract.ts":
      "export interface Backend { a: 1; b(): 2 }\nexport interface Creation { c: 3 }\n",
    "src/errors.ts": `export const one = 1;\n${"// line\n".repeat(40)}`,
    "src/version.ts": "export const version = 1;\n",
    "src/index.ts": 'import "./version.ts";\nimport "./errors.ts";\nimport "./model/node.ts";\n',
    "src/model/node.ts": 'import "../errors.ts";\n',
    "src/model/node.sh": "echo\n",
  };
  for (const [path, text] of Object.entries(files)) await Bun.write(join(folder.path, path), text);
  const measured = await measureSources(folder.path);
  expect(measured).toMatchObject({ modules: 5, contractMembers: 3 });
  expect(measured.imports?.shortWithOneImporter).toEqual(["src/model/node.ts", "src/version.ts"]);
});
