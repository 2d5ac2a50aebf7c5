import { expect, test } from "bun:test";
import type { Variant } from "../../../../src/model/cluster-record.ts";
import { ClusterError } from "../../../../src/errors.ts";
import { platformHead } from "../../../../src/platform/folder/platform-file.ts";
import { leastFacts } from "../../../support/platform-facts.ts";
import { assertVariant, parseHead } from "../../../../src/platform/artifact/artifact-head.ts";

function head(text: string) {
  const { layout, ...rest } = parseHead(
    { bytes: new TextEncoder().encode(text), sizeBytes: 9 },
    "https://h.example/a?***",
  );
  return { layout: layout?.name, ...rest };
}

test.each([
  ["#!/bin/bash\n# variant: oss\n", "oss", "cluster"],
  ["#!/bin/bash\n# variant: enterprise\nset -e\n", "enterprise", "cluster"],
  ["#!/usr/bin/env bash\r\n# variant: None\r\n", "oss", "dcos"],
  ["#!/bin/bash\n# variant:   ee", "enterprise", "dcos"],
  ["#!/bin/bash\n#\n# variant: oss\n", undefined, undefined],
  ["#!/bin/bash\n# variant: constructor\n", undefined, undefined],
  ["#!/bin/bash\n# variant: oss or so\n", undefined, undefined],
  ["#!/bin/bash\n", undefined, undefined],
  ["#!/bin/bash", undefined, undefined],
] as const)("%j tells variant %p, layout %p", (text, variant, layout) => {
  const hasUpgrade = layout && layout === "dcos";
  expect(head(text)).toEqual({ variant, layout, platform: undefined, hasUpgrade, sizeBytes: 9 });
});

test.each([
  ["", "it is empty."],
  ["<!DOCTYPE html><html>", "it is a web page."],
  ["\n <HTML><body>Sign in</body>", "it is a web page."],
  ['{"error": "expired"}', "it does not begin like a script (#!)."],
  ["\u007fELF", "it does not begin like a script (#!)."],
])("%j is no artifact", (text, reason) => {
  expect(() => head(text)).toThrow(
    expect.objectContaining({
      id: "artifact-invalid",
      message: `https://h.example/a?*** is not a release artifact: ${reason}`,
    }),
  );
});

test("a mismatch of variants names both", () => {
  const found: Variant = "enterprise";
  expect(() => assertVariant(found, "oss", "a.sh")).toThrow(
    new ClusterError(
      "variant-mismatch",
      "The artifact a.sh is the enterprise variant, but `variant` is oss.",
    ),
  );
});

test.each([undefined, "oss"] as const)("an artifact that says %p passes for oss", (found) => {
  expect(() => assertVariant(found, "oss", "a.sh")).not.toThrow();
});

test("the third line of a packed folder has its facts", () => {
  const facts = {
    ...leastFacts,
    ports: [2379],
    web: { port: 80, path: "/", scheme: "http", certificate: undefined },
  } as const;
  const text = `#!/bin/bash\n# variant: none\n# platform: ${platformHead(facts)}\n`;
  const found = parseHead({ bytes: new TextEncoder().encode(text), sizeBytes: 9 }, "a.sh");
  expect(found).toMatchObject({
    variant: "none",
    platform: facts,
    sizeBytes: 9,
    layout: { name: "folder" },
  });
  expect(found.layout!.publicPorts).toEqual([80, 2379]);
  expect(found.hasUpgrade).toBe(false);
  const next = new TextEncoder().encode(`${text}# upgrade: yes\n`);
  expect(parseHead({ bytes: next, sizeBytes: 9 }, "a.sh").hasUpgrade).toBe(true);
});

test.each([
  ["", "its third line is missing"],
  ["# platform: {\n", "it is not JSON"],
  ['# platform: {"name": "meter"}\n', "version"],
])("a packed folder with the third line %j is no artifact", (line, reason) => {
  const failure = { id: "artifact-invalid", message: expect.stringContaining(reason) };
  expect(() => head(`#!/bin/bash\n# variant: none\n${line}`)).toThrow(
    expect.objectContaining(failure),
  );
});

test("a platform without variants takes none, and a release's variant must be chosen", () => {
  expect(() => assertVariant("none", "oss", "a.sh")).toThrow(
    "The platform in a.sh has no variants, but `variant` is oss.",
  );
  expect(() => assertVariant("oss", "none", "a.sh")).toThrow(
    "is the oss variant, but `variant` was not chosen.",
  );
  expect(() => assertVariant("none", "none", "a.sh")).not.toThrow();
});
