/** Version 1 of the instance metadata is disabled at launch if the image doesn't need it, otherwise after the first login. */
import { expect, test } from "bun:test";
import { imagesOf } from "../../../local-cloud/catalogue/images.ts";
import { openFixture, region } from "../../../support/cloud-fixture.ts";
import type { CloudFixture } from "../../../support/cloud-fixture.ts";
import { neverAborted } from "../../../support/never-aborted.ts";

const twoNodes = { master: 1, agent: 1, public_agent: 0 } as const;
const usual = { instanceType: "m5.large", customTags: [], adminCidrs: [] };

/** The options of the launch requests, and how often a machine was changed later. */
const asked = ({ cloud }: CloudFixture) => ({
  atLaunch: [
    ...new Set(
      cloud.requests.entries
        .filter(({ action }) => action === "RunInstances")
        .map(({ parameters }) => parameters["MetadataOptions.HttpTokens"]),
    ),
  ],
  changes: cloud.requests.counts()["ModifyInstanceMetadataOptions"] ?? 0,
});

const imageOf = (distribution: string): string =>
  imagesOf(region).find((image) => image.distribution === distribution)!.id;

// Shows R109.
test.each([
  ["centos-7", undefined, "optional", 2],
  ["debian-12", undefined, "required", 0],
  // For the user's own image, only the image's own attribute counts.
  ["centos-7", "ubuntu-24", "required", 0],
  ["debian-12", "debian-12", "optional", 2],
] as const)(
  "%s, with the image of %s: %s at launch",
  async (distribution, own, atLaunch, changes) => {
    await using fixture = await openFixture({});
    const backend = await fixture.open(region);
    const image = own === undefined ? {} : { image: { id: imageOf(own), user: "admin" } };
    const request = fixture.request("default", {
      distribution,
      counts: twoNodes,
      options: { ...usual, ...image },
    });
    await fixture.create(backend, request, neverAborted);
    expect(asked(fixture)).toEqual({ atLaunch: [atLaunch], changes });
    expect(fixture.cloud.instances().map(({ httpTokens }) => httpTokens)).toEqual([
      "required",
      "required",
    ]);
    expect(fixture.told.filter((line) => line.startsWith("warn"))).toEqual([]);
  },
);

// Shows R109.
test("without the permission to change it later, one warning is shown, and the cluster is created", async () => {
  await using fixture = await openFixture({});
  fixture.cloud.behaviour.change({ deniedActions: ["ModifyInstanceMetadataOptions"] });
  const backend = await fixture.open(region);
  const request = fixture.request("default", { distribution: "centos-7", counts: twoNodes });
  await fixture.create(backend, request, neverAborted);
  const warnings = fixture.told.filter((line) => line.startsWith("warn"));
  expect(warnings).toHaveLength(1);
  expect(warnings[0]).toContain("ec2:ModifyInstanceMetadataOptions");
  expect(fixture.cloud.instances().map(({ httpTokens }) => httpTokens)).toEqual([
    "optional",
    "optional",
  ]);
});

test("a plan shows which of the two will happen", async () => {
  await using fixture = await openFixture({});
  const backend = await fixture.open(region);
  const lineOf = async (distribution: string): Promise<string | undefined> => {
    const { summary } = await backend.plan(
      fixture.request("default", { distribution }),
      neverAborted,
    );
    return summary.lines.find(([label]) => label === "Instance metadata")?.[1];
  };
  expect(await lineOf("debian-12")).toBe("version 2 only");
  expect(await lineOf("centos-7")).toStartWith("version 2 only, after the first login");
});

test.each([
  ["centos-7", "rocky-8 or almalinux-8"],
  ["debian-12", undefined],
] as const)(
  "a region without an image of %s names the two most like it: %p",
  async (distribution, nearest) => {
    await using fixture = await openFixture({});
    const backend = await fixture.open("ap-southeast-2");
    const planned = backend.plan(fixture.request("default", { distribution }), neverAborted);
    if (nearest === undefined) expect((await planned).summary.lines).toBeArray();
    else {
      const error = await planned.catch((reason: unknown) => reason);
      expect(error).toMatchObject({
        id: "image-not-found",
        hint: expect.stringContaining(nearest),
      });
    }
  },
);

test("a distribution with control groups 2 is rejected if version 1 is needed, with those that fit", async () => {
  await using fixture = await openFixture({});
  const backend = await fixture.open(region);
  const request = fixture.request("default", { distribution: "debian-12", needsCgroups1: true });
  const error = await backend.plan(request, neverAborted).catch((reason: unknown) => reason);
  expect(error).toMatchObject({
    id: "machine-not-set-up",
    hint: expect.stringContaining("centos-7, rhel-7"),
  });
  expect(fixture.cloud.requests.entries).toEqual([]);
  const fitting = fixture.request("default", { distribution: "centos-7", needsCgroups1: true });
  expect((await backend.plan(fitting, neverAborted)).summary.lines).toBeArray();
});
