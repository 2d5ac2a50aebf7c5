/** Whatever a node or an artifact prints, what is read from it has a known shape. */
import { expect, test } from "bun:test";
import { parseArtifactVersion } from "../../../src/platform/artifact/artifact-version.ts";
import { parseHead } from "../../../src/platform/artifact/artifact-head.ts";
import { parseNodeReport } from "../../../src/platform/readiness/node-question.ts";
import { parseResolvers } from "../../../src/platform/resolvers.ts";
import { ClusterError } from "../../../src/errors.ts";
import { hostileTexts, unprintable } from "../../support/hostile-text.ts";

const texts = hostileTexts(37, 5000);

test("name servers are IPv4 addresses, each once, in their order", () => {
  expect(parseResolvers("10.0.0.2\n192.0.2.53\n10.0.0.2\n")).toEqual(["10.0.0.2", "192.0.2.53"]);
  expect(parseResolvers("10.0.0.2\nnameserver: evil\n999.1.1.1\n1.2.3\n")).toEqual(["10.0.0.2"]);
  for (const text of texts)
    for (const address of parseResolvers(`10.0.0.2\n${text}\n`))
      expect(address).toMatch(/^\d{1,3}(?:\.\d{1,3}){3}$/);
});

test("an artifact's version is one line, and its variant one of ours", () => {
  for (const text of texts) {
    for (const found of [
      { variant: "ee", version: text },
      { variant: text, version: "1.13" },
    ]) {
      const read = attempt(() => parseArtifactVersion(JSON.stringify(found)));
      if (read === undefined) continue;
      expect(read.version).not.toMatch(unprintable);
      expect(["oss", "enterprise"]).toContain(read.variant);
    }
    attempt(() => parseArtifactVersion(text));
  }
});

test("an artifact's head tells a variant of ours or none", () => {
  for (const text of texts) {
    const bytes = new TextEncoder().encode(`#!/bin/bash\n# variant: ${text}\n`);
    const head = attempt(() => parseHead({ bytes, sizeBytes: undefined }, "a.sh"));
    expect([undefined, "oss", "enterprise"]).toContain(head?.variant);
  }
});

test("a check's status is a number or nothing", () => {
  for (const text of texts) {
    const { checkStatus } = parseNodeReport(`check.status=${text}\n`);
    expect(checkStatus === undefined || (Number.isInteger(checkStatus) && checkStatus >= 0)).toBe(
      true,
    );
  }
});

/** What has no known shape is refused as an error for people, never as a bug. */
function attempt<Read>(read: () => Read): Read | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof ClusterError) return undefined;
    throw error;
  }
}
