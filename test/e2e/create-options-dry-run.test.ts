/** create --dry-run prints what would be created and what it would cost, and changes nothing. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { fixedId } from "../local-cloud/catalogue/resource-id.ts";
import { startTestCloud } from "./support/test-cloud.ts";
import type { TestCloud } from "./support/test-cloud.ts";

const state: { cloud?: TestCloud } = {};
const cloud = (): TestCloud => state.cloud!;
const subnet = fixedId("subnet", "us-west-2/own/public");

beforeAll(async () => {
  state.cloud = await startTestCloud("in-process");
  await Bun.write(join(state.cloud.folder, "artifact.sh"), "#!/bin/bash\n# variant: oss\nexit 1\n");
});

afterAll(async () => {
  await state.cloud?.[Symbol.asyncDispose]();
});

const dryRun = async (words: readonly string[]) =>
  cloud().run([
    "create",
    "--dry-run",
    "--variant",
    "oss",
    ...words,
    join(cloud().folder, "artifact.sh"),
  ]);

// Shows R97.
test("as text: everything that a bill or a reviewer asks for", async () => {
  const shown = await dryRun([
    "--linux-distribution",
    "debian-12",
    "--masters",
    "3",
    "--custom-tag",
    "team:storage",
  ]);
  expect(shown.status).toBe(0);
  const lines = new Map(
    shown.stdout.split("\n").map((line) => line.split(/ {2,}/, 2) as [string, string]),
  );
  expect(lines.get("Cluster")).toBe("default");
  expect(lines.get("Region")).toBe("us-west-2");
  expect(lines.get("Image")).toMatch(
    /^ami-[0-9a-f]+ \(debian-12-amd64-20250903-2225\), user admin$/,
  );
  expect(lines.get("Machines")).toBe("5 × m5.large: 3 masters, 1 agent, 1 public agent");
  expect(lines.get("Security group")).toMatch(
    /^cluster-e2e-default: TCP 22, 80, 443 from [\d.]+\/32;/,
  );
  expect(lines.get("Custom tags")).toBe("team=storage");
  expect(lines.get("Cost")).toStartWith("about $1.20 ");
  expect(lines.get("Ends")).toMatch(
    /\d\d:\d\d UTC \(in (2 h|1 h 59 min)\), two hours after launch$/,
  );
});

test("as JSON, with another image, type, subnet and range", async () => {
  const image = fixedId("ami", "us-west-2debian-12-amd64-20250814-2204");
  const place =
    `--image ${image} --ssh-user admin --subnet ${subnet} --admin-cidr 10.1.0.0/16`.split(" ");
  const shown = await dryRun([
    ...place,
    "--instance-type",
    "c5.large",
    "--agents",
    "0",
    "--output",
    "json",
  ]);
  const { plan, schemaVersion } = JSON.parse(shown.stdout) as {
    readonly plan: object;
    readonly schemaVersion: number;
  };
  expect(schemaVersion).toBe(1);
  expect(plan).toMatchObject({
    cluster: "default",
    region: "us-west-2",
    image: { id: image, user: "admin" },
    instanceType: "c5.large",
    counts: { masters: 1, agents: 0, publicAgents: 1 },
    subnets: [{ id: subnet }],
    rules: { ports: [22, 80, 443], adminCidrs: ["10.1.0.0/16"] },
    maximumCostDollars: expect.any(Number),
  });
});

test("a type that the region doesn't offer is refused", async () => {
  const shown = await dryRun(["--instance-type", "m9.huge"]);
  expect(shown).toMatchObject({ status: 2, stdout: "" });
  expect(shown.stderr).toContain("m9.huge");
});

test("a type without a known price says so", async () => {
  const shown = await dryRun(["--instance-type", "t3.micro"]);
  expect(shown.stdout).toContain("price unknown");
});

// Shows R97.
test("nothing but descriptions was asked for, and nothing is kept here", async () => {
  const { counts } = (await cloud().control("requests")) as {
    readonly counts: Readonly<Record<string, number>>;
  };
  expect(Object.keys(counts).filter((action) => !action.startsWith("Describe"))).toEqual([]);
  const kept = await readdir(cloud().environment["XDG_STATE_HOME"]!, { recursive: true }).catch(
    () => [],
  );
  expect(kept.filter((path) => path.includes("default"))).toEqual([]);
});
