import { expect, test } from "bun:test";
import { isIPv4 } from "node:net";
import { join } from "node:path";
import {
  parseClusterId,
  parseCounts,
  parseCountsObject,
  parseCreationId,
  parseDistribution,
  parseIndex,
  parseIpv4,
  parseMoment,
  parsePlatform,
  parsePort,
  parseRegion,
  parseRole,
  parseUserName,
  parseVariant,
  parseWebUi,
  platformNameOf,
  platformText,
} from "../../../src/model/parse-values.ts";
import { hostileTexts } from "../../support/hostile-text.ts";

const texts = hostileTexts(20_260_101, 20_000);
/** What would be unsafe in a path, in a line of configuration or on a terminal. */
const unsafe = /[^\x20-\x7E]|["'\\$`;%~]/;

test.each([
  ["cluster id", parseClusterId, 63],
  ["creation id", parseCreationId, 16],
  ["role", parseRole, 12],
  ["variant", parseVariant, 10],
  ["user name", parseUserName, 32],
  ["IPv4 address", parseIpv4, 15],
  ["region", parseRegion, 80],
] as const)(
  "no text becomes a %s that is unsafe in a path, a line or on a terminal",
  (_, parse, longest) => {
    for (const text of texts) {
      const value = parse(text);
      if (value === undefined) continue;
      expect(text === value).toBe(true);
      expect(value).not.toMatch(unsafe);
      expect(value).not.toMatch(/[\s/]|^[-.]/);
      expect(value.length).toBeLessThanOrEqual(longest);
      expect(join("/root/of/it", value).startsWith("/root/of/it/")).toBe(true);
    }
  },
);

test("no text becomes a distribution with more than one space, or with a character that is special anywhere", () => {
  for (const text of texts) {
    const value = parseDistribution(text);
    if (value === undefined) continue;
    expect(value).not.toMatch(unsafe);
    expect(value.split(" ").length).toBeLessThanOrEqual(2);
    expect(value.length).toBeLessThanOrEqual(520);
  }
});

test.each([
  ["index", parseIndex, 0, 999],
  ["port", parsePort, 1, 65_535],
] as const)(
  "no text becomes an %s out of bounds, or one that is written otherwise",
  (_, parse, least, most) => {
    for (const text of texts) {
      const value = parse(text);
      if (value === undefined) continue;
      expect(String(value)).toBe(text);
      expect(value >= least && value <= most).toBe(true);
    }
  },
);

test("no text becomes counts that read otherwise, or a moment that is none", () => {
  for (const text of texts) {
    const counts = parseCounts(text);
    if (counts !== undefined)
      expect(text).toBe(
        `master=${counts.master} agent=${counts.agent} public_agent=${counts.public_agent}`,
      );
    const moment = parseMoment(text);
    if (moment !== undefined) expect(moment.toISOString().slice(0, 10)).toBe(text.slice(0, 10));
  }
});

const foreignResources: readonly unknown[] = [
  undefined,
  null,
  true,
  1.5,
  -1,
  Number.NaN,
  [],
  ["default"],
  {},
  () => {},
];

test.each([
  parseClusterId,
  parseCounts,
  parseCountsObject,
  parseCreationId,
  parseDistribution,
  parseIndex,
  parseIpv4,
  parseMoment,
  parsePort,
  parseRegion,
  parseRole,
  parseUserName,
  parseVariant,
  parseWebUi,
])("%p takes nothing but what it knows", (parse) => {
  for (const found of foreignResources) expect(parse(found)).toBeUndefined();
});

test("what this program writes is read back", () => {
  expect(["a", "Nightly_2.x-1", "a".repeat(63)].map(parseClusterId)).toEqual([
    "a",
    "Nightly_2.x-1",
    "a".repeat(63),
  ]);
  expect(["a".repeat(64), "-a", ".a", "a b"].map(parseClusterId)).toEqual(Array(4).fill(undefined));
  expect(parseCreationId("0123456789abcdef")).toBe("0123456789abcdef");
  expect(["0123456789ABCDEF", "0123456789abcde", "0123456789abcdef0"].map(parseCreationId)).toEqual(
    Array(3).fill(undefined),
  );
  expect(parseCounts("master=1 agent=20 public_agent=0")).toEqual({
    master: 1,
    agent: 20,
    public_agent: 0,
  });
  expect(parseCounts("master=1 agent=1001 public_agent=0")).toBeUndefined();
  expect(parseCountsObject({ master: 3, agent: 0, public_agent: 1 })).toEqual({
    master: 3,
    agent: 0,
    public_agent: 1,
  });
  expect(parseCountsObject({ master: 3, agent: 0 })).toBeUndefined();
  const named = [
    "debian-12",
    "amazon-2023",
    "own image",
    "image ami-0123456789abcdef0",
    "image localhost:5000/a/b:1",
  ];
  expect(named.map(parseDistribution)).toEqual(named);
  expect(["ec2-user", "admin", "_apt"].map(parseUserName)).toEqual(["ec2-user", "admin", "_apt"]);
  expect(["Admin", "-a", "1a", "a".repeat(33)].map(parseUserName)).toEqual(
    Array(4).fill(undefined),
  );
  expect(parseMoment("2026-01-01T00:00:00.123456789Z")).toEqual(
    new Date("2026-01-01T00:00:00.123Z"),
  );
  expect(parseMoment("2026-01-01T01:00:00+01:00")).toEqual(new Date("2026-01-01T00:00:00Z"));
  expect(["2026-01-01", "January 1", "2026-02-31T00:00:00"].map(parseMoment)).toEqual(
    Array(3).fill(undefined),
  );
  expect(
    ["1000", "1001"].map((count) => parseCounts(`master=0 agent=${count} public_agent=0`)?.agent),
  ).toEqual([1000, undefined]);
  expect([0, "1", 65_535, 65_536].map(parsePort)).toEqual([undefined, 1, 65_535, undefined]);
  expect([parseIndex("0"), parseIndex(999), parseIndex(1000)]).toEqual([0, 999, undefined]);
  const regions = [
    "us-west-2",
    "ap-southeast-5",
    "us-gov-east-1",
    "us-isob-east-1",
    "eusc-de-east-1",
  ];
  expect(regions.map(parseRegion)).toEqual(regions);
  expect(isIPv4(parseIpv4("192.0.2.1") ?? "")).toBe(true);
});

test("the hostile texts hold what they promise, and are the same for the same seed", () => {
  expect(hostileTexts(7, 500)).toEqual(hostileTexts(7, 500));
  expect(hostileTexts(7, 500)).not.toEqual(hostileTexts(8, 500));
  const all = texts.join("\u0001");
  for (const piece of ["..", "\n", "\0", "\u001B", "\u202E", "\u0430", "ProxyCommand"])
    expect(all).toContain(piece);
  expect(Math.max(...texts.map((text) => text.length))).toBeGreaterThanOrEqual(50_000);
  expect(texts.length).toBe(20_000);
});

test.each([
  [{ name: "slurm", version: "24.05", ports: [80, 6817] }, "slurm 80,6817 24.05"],
  [{ name: "bare", version: "1", ports: [] }, "bare - 1"],
  [{ name: "etcd", version: "3.5, größer – β", ports: [1] }, "etcd 1 3.5, größer – β"],
])("the platform %j is stored as %p, and read back", (platform, text) => {
  expect(platformText(platform)).toBe(text);
  expect(platformNameOf(text)).toEqual(platform);
});

test("a platform fits into a tag with any ports, which are left out if they are too many", () => {
  const ports = Array.from({ length: 100 }, (_, index) => 60_000 + index);
  const text = platformText({ name: "n".repeat(40), version: "v".repeat(50), ports })!;
  expect(text.length).toBeLessThanOrEqual(256);
  expect(platformNameOf(text)).toEqual({ name: "n".repeat(40), version: "v".repeat(50) });
});

test("no text becomes a platform that moves the cursor or forges a line", () => {
  for (const text of [
    "",
    "slurm 24.05",
    "slurm 0 1",
    "SLURM - 1",
    "slurm - 1\u001B[2J",
    "a - 1\nb",
  ])
    expect(platformNameOf(text)).toBeUndefined();
  for (const text of texts) expect(parsePlatform(text) ?? "").not.toMatch(/[\p{C}\p{Zl}\p{Zp}]/u);
});
