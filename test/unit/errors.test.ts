/** Each error id has a case that makes it happen, in one of the files named here. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { errorTable } from "../../src/errors.ts";

const files = [
  "errors.test.ts",
  "errors-on-nodes.test.ts",
  "container-errors.test.ts",
  "container-snapshots.test.ts",
];
const sources = files.map((file) => readFileSync(join(import.meta.dir, "..", "e2e", file), "utf8"));
const cases = sources.flatMap((source) => [
  ...source.matchAll(/\bid: "([a-z-]+)",\s+status: (\d+),/g),
]);

// Shows R90.
test("the cases make every error happen, and no other", () => {
  const ids = new Set(cases.map(([, id]) => id ?? ""));
  expect([...ids].toSorted()).toEqual(Object.keys(errorTable).toSorted());
});

// Shows R92.
test("each with the exit code of the table", () => {
  const codes = Object.fromEntries(
    Object.entries(errorTable).map(([id, { exitCode }]) => [id, String(exitCode)]),
  );
  const wrong = cases.filter(([, id = "", status]) => codes[id] !== status).map(([, id]) => id);
  expect(wrong).toEqual([]);
});
