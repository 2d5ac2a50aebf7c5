/** Compares the licenses in the executables with what the executables really contain. */
import { beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { bundledFiles } from "../../../../scripts/build.ts";
import { sharedDocuments } from "../../../../scripts/release/documents.ts";
import { missingFrom, thirdPartyNotices } from "../../../../scripts/release/notices.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

const root = join(import.meta.dir, "..", "..", "..", "..");
const state = { text: "", inputs: [] as readonly string[] };

beforeAll(async () => {
  state.text = await Bun.file(join(root, "src", "commands", "third-party-notices.txt")).text();
  state.inputs = await bundledFiles();
});

// Shows R19.
test("every bundled package has an entry with a text", async () => {
  expect(state.inputs.filter((path) => path.includes("node_modules/")).length).toBeGreaterThan(100);
  expect(await missingFrom(state.text, root, state.inputs)).toEqual([]);
  const numbers = [...state.text.matchAll(/, text (\d+)$/gm)].map(([, number]) => Number(number));
  expect(numbers.length).toBeGreaterThan(20);
  for (const number of numbers)
    expect(state.text).toContain(`\n${"=".repeat(`Text ${number}`.length)}\nText ${number}\n`);
});

test("the file is up to date", async () => {
  expect(await thirdPartyNotices(root, state.inputs)).toBe(state.text);
});

// Shows R19.
test("a bundled package without an entry, or in another version, is detected", async () => {
  const without = state.text
    .replace(/^arg .*\n/m, "")
    .replace(/^yaml \S+/m, (entry) => entry.replace(/\d+$/, "999"));
  const { version: arg } = (await Bun.file(join(root, "node_modules/arg/package.json")).json()) as {
    version: string;
  };
  const { version: yaml } = (await Bun.file(
    join(root, "node_modules/yaml/package.json"),
  ).json()) as {
    version: string;
  };
  expect(await missingFrom(without, root, state.inputs)).toEqual([`arg ${arg}`, `yaml ${yaml}`]);
});

test("lists the components of Bun, with the text of the LGPL that some of them have", () => {
  for (const part of [`Bun ${Bun.version}`, "JavaScriptCore", "boringssl", "tinycc", "libicu"])
    expect(state.text).toContain(part);
  expect(state.text).toMatch(
    /GNU LESSER GENERAL PUBLIC LICENSE\s+Version 2\.1, February 1999[^]*END OF TERMS AND CONDITIONS/,
  );
});

test.each([
  ["does not name its license", {}],
  ["comes without the text of its license", { license: "MIT" }],
])("a package that %s is rejected", async (problem, facts) => {
  await using folder = await scratchFolder();
  const own = join(folder.path, "node_modules", "own");
  await Bun.write(
    join(own, "package.json"),
    JSON.stringify({ name: "own", version: "1.2.3", ...facts }),
  );
  const { message } = await failureOf(
    thirdPartyNotices(folder.path, ["node_modules/own/index.js"]),
  );
  expect(message).toBe(`own 1.2.3 ${problem}`);
});

test("a release contains both files, and the schema of the programs' JSON", async () => {
  const entries = sharedDocuments(root);
  expect(entries.map(({ name }) => name)).toEqual([
    "share/doc/cluster-e2e/LICENSE",
    "share/doc/cluster-e2e/THIRD-PARTY-NOTICES",
    "share/doc/cluster-e2e/results.schema.json",
  ]);
  const texts = await Promise.all(
    entries.map(async ({ from }) => ("path" in from ? Bun.file(from.path).text() : from.text)),
  );
  expect(texts[0]).toContain("Apache License");
  expect(texts[1]).toBe(state.text);
});
