/** The steps of a release that only process texts. */
import { describe, expect, test } from "bun:test";
import { copyFile } from "node:fs/promises";
import { join } from "node:path";
import { programs } from "../../../../scripts/build.ts";
import { cutChangelog } from "../../../../scripts/release/changelog.ts";
import { billOfMaterials, packagesOf } from "../../../../scripts/release/components.ts";
import { installer } from "../../../../scripts/release/installer.ts";
import { platforms } from "../../../../scripts/release/platforms.ts";
import { tooNewSymbolVersions } from "../../../../scripts/release/symbol-versions.ts";
import { nextTag } from "../../../../scripts/release/version-tag.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import { billFaults } from "../../../support/cyclonedx.ts";

const root = join(import.meta.dir, "..", "..", "..", "..");
const evening = new Date("2026-03-09T23:59:00Z");

// Shows R16.
test.each([
  [[], "2026.03.09.0"],
  [["2026.03.08.4", "2025.03.09.1", "v1"], "2026.03.09.0"],
  [["2026.03.09.0", "2026.3.9.9", "2026.03.09.10"], "2026.03.09.11"],
])("the next tag after %p is %s", (tags, next) => {
  expect(nextTag(tags, evening)).toBe(next);
});

describe("the changelog", () => {
  const text = "# Changelog\n\nWhat changed; there is none yet.\n\n## Unreleased\n\n- A thing.\n";

  test("moves the unreleased changes under the tag", () => {
    const { changelog, notes } = cutChangelog(text, "2026.03.09.0");
    expect(notes).toBe("- A thing.");
    expect(changelog).toBe(
      "# Changelog\n\nWhat changed.\n\n## Unreleased\n\n## 2026.03.09.0\n\n- A thing.\n",
    );
    const later = changelog.replace("## Unreleased\n", "## Unreleased\n\n- Another.\n");
    expect(cutChangelog(later, "2026.03.10.0").changelog).toBe(
      "# Changelog\n\nWhat changed.\n\n## Unreleased\n\n## 2026.03.10.0\n\n- Another.\n\n## 2026.03.09.0\n\n- A thing.\n",
    );
  });

  test("is rejected if it is empty", () => {
    expect(() =>
      cutChangelog(cutChangelog(text, "2026.03.09.0").changelog, "2026.03.10.0"),
    ).toThrow("has nothing under");
  });
});

test("symbols of the C library that glibc 2.17 lacks are found", () => {
  const file = Buffer.from("\0GLIBC_2.2.5\0GLIBC_2.17\0GLIBC_2.28\0GLIBC_3.0\0GLIBC_2.28\0");
  expect(tooNewSymbolVersions(file)).toEqual(["GLIBC_2.28", "GLIBC_3.0"]);
});

test("the installer is bound to its release, without values that a shell would execute", () => {
  const template = "set -eu\n\nrelease=''\ndownload_root=''\nsigner=''\nsums=''\n";
  const facts = {
    release: "2026.03.09.0",
    downloadRoot: "https://example.com/$&",
    signer: undefined,
    sums: "ab  a\ncd  b",
  };
  expect(installer(template, facts)).toBe(
    "set -eu\n\nrelease='2026.03.09.0'\ndownload_root='https://example.com/$&'\nsigner=''\nsums='ab  a\ncd  b'\n",
  );
  expect(() => installer(template, { ...facts, downloadRoot: "https://'; reboot '" })).toThrow(
    "cannot be written into a script",
  );
});

test("a package is identified by the innermost node_modules folder", () => {
  const inputs = [
    "src/a.ts",
    "node_modules/ssh2/lib/a.js",
    "../node_modules/a/node_modules/@b/c/d.js",
    "node_modules/ssh2/b.js",
  ];
  expect(packagesOf(inputs)).toEqual(["@b/c", "ssh2"]);
});

test("the bill of materials contains Bun, its platforms and the packages, each with its pin in bun.lock", async () => {
  const bill = {
    tag: "2026.03.09.0",
    time: evening.getTime(),
    inputs: new Set(["node_modules/ssh2/lib/x.js"]),
    platforms,
  };
  const { components, metadata, ...rest } = JSON.parse(await billOfMaterials(root, bill)) as {
    readonly metadata: unknown;
    readonly components: readonly {
      readonly purl: string;
      readonly hashes: readonly { readonly content: string }[];
    }[];
  };
  expect(rest).toEqual({ bomFormat: "CycloneDX", specVersion: "1.6", version: 1 });
  expect(metadata).toMatchObject({
    timestamp: "2026-03-09T23:59:00.000Z",
    component: { version: "2026.03.09.0" },
  });
  expect(components.map(({ purl }) => purl.replace(/@[^@]*$/, ""))).toEqual([
    "pkg:npm/bun",
    ...platforms.map(({ basePackage }) => `pkg:npm/${basePackage.replace("@", "%40")}`),
    "pkg:npm/ssh2",
  ]);
  const pinned = components.filter(({ purl }) => !purl.startsWith("pkg:npm/bun@"));
  expect(pinned.map(({ hashes }) => hashes[0]!.content)).toEqual(
    pinned.map(() => expect.stringMatching(/^[0-9a-f]{128}$/)),
  );
});

test("a bill of materials with Bun and every installed package matches the schema of CycloneDX", async () => {
  const lists = ["*/package.json", "@*/*/package.json"].map((pattern) =>
    Array.fromAsync(new Bun.Glob(pattern).scan({ cwd: join(root, "node_modules") })),
  );
  const files = (await Promise.all(lists))
    .flat()
    .filter((path) => !/^(@oven\/)?bun\b(?!-types)/.test(path));
  const inputs = new Set(files.map((path) => join("node_modules", path)));
  expect(packagesOf(inputs)).toEqual(expect.arrayContaining(["@aws-sdk/client-ec2", "ssh2"]));
  const text = await billOfMaterials(root, {
    tag: "2026.03.09.0",
    time: evening.getTime(),
    inputs,
    platforms,
  });
  expect(await billFaults(text)).toBeNull();
  expect(
    await billFaults(text.replace("2026-03-09T23:59:00.000Z", "in the evening")),
  ).toMatchObject([{ instancePath: "/metadata/timestamp", keyword: "format" }]);
});

test("a package with two versions is listed twice", async () => {
  await using folder = await scratchFolder();
  await copyFile(join(root, "bun.lock"), join(folder.path, "bun.lock"));
  const versions = { "node_modules/b": "1.0.0", "node_modules/@c/a/node_modules/b": "2.0.0" };
  for (const [path, version] of Object.entries(versions)) {
    await Bun.write(
      join(folder.path, path, "package.json"),
      JSON.stringify({ name: "b", version }),
    );
  }
  const inputs = new Set(Object.keys(versions).map((path) => `${path}/index.js`));
  const text = await billOfMaterials(folder.path, {
    tag: "2026.03.09.0",
    time: evening.getTime(),
    inputs,
    platforms: [],
  });
  expect(text.match(/"purl": "pkg:npm\/b@.*"/g)?.toSorted()).toEqual([
    '"purl": "pkg:npm/b@1.0.0"',
    '"purl": "pkg:npm/b@2.0.0"',
  ]);
});

test("package managers install every program, each through the same launcher", async () => {
  const { bin } = (await Bun.file(join(root, "package.json")).json()) as {
    readonly bin: Record<string, string>;
  };
  expect(bin).toEqual(
    Object.fromEntries((await programs()).map((program) => [program, "src/bin/launch"])),
  );
});
