import { unmarked } from "../../../../src/outside-text.ts";
import { optionName } from "../../../../src/references.ts";
import { expect, test } from "bun:test";
import { join } from "node:path";
import { resolveLicense } from "../../../../src/platform/configuration/configuration-file.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

const { signal } = new AbortController();
const nowhere = "/nonexistent/license.txt";
const all = {
  variant: "enterprise",
  extraConfiguration: { license_key_contents: "from configuration" },
  optionPath: nowhere,
  environment: { CLUSTER_LICENSE_KEY_PATH: nowhere },
} as const;

async function licenseFile(text: string) {
  const folder = await scratchFolder();
  const path = join(folder.path, "license.txt");
  await Bun.write(path, text);
  return { path, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() };
}

// Shows R53.
test("--extra-config wins, and the files stay unread", async () => {
  expect(await resolveLicense(all, signal)).toEqual({
    value: { contents: "from configuration", source: optionName("extraConfig") },
  });
});

// Shows R53.
test("--license-key comes next, and the variable's file stays unread", async () => {
  await using file = await licenseFile("key\n");
  expect(
    await resolveLicense({ ...all, extraConfiguration: {}, optionPath: file.path }, signal),
  ).toEqual({
    value: { contents: "key", source: optionName("licenseKey") },
  });
});

// Shows R53.
test("CLUSTER_LICENSE_KEY_PATH comes last", async () => {
  await using file = await licenseFile("key");
  const sources = { ...all, extraConfiguration: {}, optionPath: undefined };
  expect(
    await resolveLicense(
      { ...sources, environment: { CLUSTER_LICENSE_KEY_PATH: file.path } },
      signal,
    ),
  ).toEqual({
    value: { contents: "key", source: "CLUSTER_LICENSE_KEY_PATH" },
  });
});

test.each([
  ["a\nb\n", "a\nb"],
  ["a\r\n", "a"],
  ["a\n\n", "a\n"],
  [" a ", " a "],
])("of the file %j one trailing newline is dropped", async (text, contents) => {
  await using file = await licenseFile(text);
  const license = await resolveLicense(
    { ...all, extraConfiguration: {}, optionPath: file.path },
    signal,
  );
  expect(license.value?.contents).toBe(contents);
});

// Shows R48.
test("for open source nothing is looked at", async () => {
  expect(await resolveLicense({ ...all, variant: "oss", extraConfiguration: {} }, signal)).toEqual({
    value: undefined,
  });
});

test.each([{}, { CLUSTER_LICENSE_KEY_PATH: "" }, { CLUSTER_LICENSE_KEY_PATH: undefined }])(
  "without a source (%j) there is no license",
  async (environment) => {
    const sources = { ...all, extraConfiguration: {}, optionPath: undefined, environment };
    expect(await resolveLicense(sources, signal)).toEqual({ value: undefined });
  },
);

test.each([
  [
    { optionPath: nowhere },
    `\`licenseKey\`: cannot read the license file ${nowhere}: the file does not exist.`,
  ],
  [
    { optionPath: undefined },
    `CLUSTER_LICENSE_KEY_PATH: cannot read the license file ${nowhere}: the file does not exist.`,
  ],
  [
    { optionPath: "/" },
    "`licenseKey`: cannot read the license file /: it is a folder, not a file.",
  ],
  [
    { extraConfiguration: { license_key_contents: null } },
    "`extraConfig`: license_key_contents must be text.",
  ],
])("a source that is present but unusable (%j) is a problem", async (part, problem) => {
  const found = await resolveLicense({ ...all, extraConfiguration: {}, ...part }, signal);
  expect(found.problems?.map(unmarked)).toEqual([problem]);
});

test("an empty license file is a problem", async () => {
  await using file = await licenseFile("\n");
  const license = await resolveLicense(
    { ...all, extraConfiguration: {}, optionPath: file.path },
    signal,
  );
  expect(license.problems).toEqual([
    `${optionName("licenseKey")}: the license file ${file.path} is empty.`,
  ]);
});
