import { expect, test } from "bun:test";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { assertInSchema } from "../../support/results-schema.ts";

const commands = join(import.meta.dir, "../../../src/commands");

test("every result of a command is compared with its declaration", async () => {
  const found: string[] = [];
  for await (const path of new Bun.Glob("**/*.ts").scan({ cwd: commands })) {
    const text = await readFile(join(commands, path), "utf8");
    for (const [result] of text.matchAll(/\bdata(?:: [^;]*?satisfies JsonResults\[|:| [,}]).*/g))
      found.push(`${path}: ${result}`);
  }
  expect(found.length).toBeGreaterThan(25);
  expect(found.filter((each) => !each.includes("satisfies JsonResults["))).toEqual([]);
});

const error = { id: "bug", message: "Internal error", facts: { any: [1, "thing"] } };
const waited = { schemaVersion: 1, cluster: { id: "one" }, ready: true, seconds: 1 };

test.each([
  ["wait", waited],
  ["wait", { ...waited, ageSeconds: 2, error }],
  ["wait", { schemaVersion: 1, error }],
  ["snapshot", { schemaVersion: 1, snapshot: "installed", file: "/cluster.zst" }],
])("the schema of %s accepts %j", (command, printed) => {
  expect(() => assertInSchema(command, printed)).not.toThrow();
});

test.each([
  ["wait", { ...waited, more: 1 }],
  ["wait", { ...waited, seconds: "1" }],
  ["wait", { ...waited, schemaVersion: 2 }],
  ["wait", { schemaVersion: 1, cluster: { id: "one" } }],
  ["list", { schemaVersion: 1, clusters: [{ id: "one" }] }],
  ["snapshot", { schemaVersion: 1, snapshots: [], snapshot: "both" }],
])("the schema of %s refuses %j", (command, printed) => {
  expect(() => assertInSchema(command, printed)).toThrow("results.schema.json");
});
