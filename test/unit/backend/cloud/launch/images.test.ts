/** Which image is launched, and what is said if there is none. */
import { expect, test } from "bun:test";
import type { Image } from "@aws-sdk/client-ec2";
import type { CloudApi } from "../../../../../src/backend/cloud/api/api.ts";
import { findImage } from "../../../../../src/backend/cloud/launch/images.ts";
import { failureOf } from "../../../../support/failure-of.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";

function openApi(Images: readonly Image[], region = "us-west-2") {
  const requests: unknown[] = [];
  const call = async (_: string, request: unknown): Promise<unknown> => {
    requests.push(request);
    return { Images };
  };
  return { api: { region, call } as unknown as CloudApi, requests };
}

const image = (id: string, CreationDate: string | undefined, more: Partial<Image> = {}): Image => ({
  ImageId: id,
  Name: `name of ${id}`,
  ...(CreationDate !== undefined && { CreationDate }),
  ...more,
});
const own = { id: "ami-00000009", user: "me" };

test("the newest available image of the distribution's owner is launched, even if it is deprecated", async () => {
  const images = [
    image("ami-0", undefined),
    image("ami-1", "2024-01-01T00:00:00Z"),
    image("ami-2", "2025-06-01T00:00:00Z"),
  ];
  const { api, requests } = openApi(images);
  expect(await findImage(api, "debian-12", undefined, neverAborted)).toEqual({
    id: "ami-2",
    name: "name of ami-2",
    user: "admin",
    rootDevice: "/dev/sda1",
    leastGigabytes: 0,
    furtherDevices: [],
    traits: {},
    knowsMetadata2: true,
  });
  expect(requests).toEqual([
    {
      Owners: ["136693071363"],
      IncludeDeprecated: true,
      Filters: [
        { Name: "name", Values: ["debian-12-amd64-*"] },
        { Name: "architecture", Values: ["x86_64"] },
        { Name: "root-device-type", Values: ["ebs"] },
        { Name: "virtualization-type", Values: ["hvm"] },
        { Name: "state", Values: ["available"] },
      ],
    },
  ]);
});

test("the volume of the image's root device sets the least size", async () => {
  const BlockDeviceMappings = [
    { DeviceName: "/dev/sdb", Ebs: { VolumeSize: 500 } },
    { DeviceName: "/dev/xvda", Ebs: { VolumeSize: 80 } },
    { DeviceName: "/dev/sdc", VirtualName: "ephemeral0" },
    { DeviceName: "/dev/sdd", NoDevice: "" },
  ];
  const { api } = openApi([
    image("ami-1", undefined, { RootDeviceName: "/dev/xvda", BlockDeviceMappings }),
  ]);
  const found = await findImage(api, "debian-12", undefined, neverAborted);
  expect([found.rootDevice, found.leastGigabytes]).toEqual(["/dev/xvda", 80]);
  expect(found.furtherDevices).toEqual(["/dev/sdb"]);
});

test.each([
  ["centos-7", false, undefined, false],
  ["centos-7", false, "v2.0", true],
  ["debian-12", false, undefined, true],
  // For the user's own image, only what the API says counts.
  ["debian-12", true, undefined, false],
  ["debian-12", true, "v2.0", true],
] as const)(
  "%s, own image: %p, metadata %p: version 2 alone is enough: %p",
  async (name, isOwn, support, expected) => {
    const { api } = openApi([
      image(own.id, undefined, support === undefined ? {} : { ImdsSupport: support }),
    ]);
    const found = await findImage(api, name, isOwn ? own : undefined, neverAborted);
    expect(found.knowsMetadata2).toBe(expected);
  },
);

test("the user's own image is asked for by its id, and logged in to as the given user", async () => {
  const { api, requests } = openApi([{ ImageId: own.id }]);
  expect(await findImage(api, "no-such", own, neverAborted)).toMatchObject({
    id: own.id,
    name: own.id,
    user: "me",
  });
  expect(requests).toEqual([{ ImageIds: [own.id], IncludeDeprecated: true }]);
});

test.each([
  [
    "a distribution",
    undefined,
    'There is no image of debian-12 ("debian-12-amd64-*", owner 136693071363) in region us-west-2.',
    "Choose `linuxDistribution debian-13 or debian-11`, another `region`, or pass an image with `image` and `sshUser`.",
  ],
  [
    "the user",
    own,
    "There is no image ami-00000009 in region us-west-2.",
    "Choose another `linuxDistribution`, another `region`, or pass an image with `image` and `sshUser`.",
  ],
])(
  "a missing image of %s is named, with what to choose instead",
  async (_, chosen, message, hint) => {
    const error = await failureOf(findImage(openApi([]).api, "debian-12", chosen, neverAborted));
    expect([error.id, error.message, error.hint]).toEqual(["image-not-found", message, hint]);
    expect(error.facts?.["image"]).toBe(chosen?.id);
    expect("image" in error.facts!).toBe(chosen !== undefined);
  },
);

test("an unknown distribution is an error that lists the known ones", async () => {
  const error = await failureOf(findImage(openApi([]).api, "beos-5", undefined, neverAborted));
  expect([error.id, error.message]).toEqual([
    "bad-usage",
    'No images are known for the distribution "beos-5".',
  ]);
  expect(error.hint).toContain("debian-12");
});

test.each([
  ["us-west-2", "debian-12", "136693071363"],
  ["us-gov-west-1", "ubuntu-22", "513442679011"],
  ["us-gov-east-1", "rhel-9", "219670896067"],
  ["cn-north-1", "amazon-2023", "141808717104"],
  ["cn-northwest-1", "rhel-8", "841258680906"],
])("in %s, images of %s are those of %s", async (region, distribution, owner) => {
  const { api, requests } = openApi([image("ami-1", undefined)], region);
  await findImage(api, distribution, undefined, neverAborted);
  expect(requests).toMatchObject([{ Owners: [owner] }]);
});

test.each([
  ["us-gov-west-1", "debian-12", /sshUser.*rhel-7, rhel-8, rhel-9, ubuntu-20.*amazon-2023\.$/],
  ["cn-north-1", "centos-7", /sshUser.*rhel-8/],
  ["us-isob-east-1", "amazon-2023", /^Pass an image with `image` and `sshUser`\.$/],
])("in %s, nobody guesses whose images of %s are genuine", async (region, distribution, hint) => {
  const { api, requests } = openApi([image("ami-1", undefined)], region);
  const failure = await failureOf(findImage(api, distribution, undefined, neverAborted));
  expect(failure.id).toBe("image-not-found");
  expect(failure.hint).toMatch(hint);
  expect(requests).toEqual([]);
  // An image of the user's own has an id, and needs no owner.
  expect((await findImage(api, distribution, own, neverAborted)).id).toBe("ami-1");
});
