import { expect, test } from "bun:test";
import { labelNames } from "../../../../../src/backend/container/records/labels.ts";
import {
  createdAt,
  toSnapshots,
} from "../../../../../src/backend/container/snapshots/read-snapshots.ts";
import { hostileTexts } from "../../../../support/hostile-text.ts";

const creationId = "0123456789abcdef";
const labelled = (values: Readonly<Record<string, string>>) =>
  Object.fromEntries(
    Object.entries(values).map(([key, value]) => [
      labelNames[key as keyof typeof labelNames],
      value,
    ]),
  );
const part = {
  clusterId: "default",
  creationId,
  snapshot: "installed",
  role: "master",
  index: "0",
};
const settings = JSON.stringify({ volumes: ["/a:/b:ro"], memory: "1g", cpus: "1.5" });
const image = (more: Readonly<Record<string, string>> = {}, snapshot = "installed") => ({
  Id: `sha256:${"ab".repeat(32)}`,
  RepoTags: [`localhost/cluster-e2e-snapshot:${creationId}-${snapshot}-master_0`],
  Created: "2026-01-01T00:00:00Z",
  Config: {
    Labels: labelled({
      ...part,
      counts: "master=1 agent=0 public_agent=0",
      settings,
      address: "172.18.0.2",
      volumeSize: "1",
      ...more,
    }),
  },
});
const volume = {
  Name: `cluster-e2e-snapshot-${creationId}-installed-master_0`,
  Labels: labelled(part),
};

test("a snapshot with every image and volume is complete, and tells what a restore needs", () => {
  const [snapshot] = toSnapshots([image()], [volume]);
  expect(snapshot).toMatchObject({ name: "installed", clusterId: "default", creationId });
  expect(snapshot!.nodes).toMatchObject([
    {
      address: "172.18.0.2",
      settings: { customVolumes: ["/a:/b:ro"], limits: { memory: "1g", cpus: "1.5" } },
      volume: volume.Name,
    },
  ]);
});

test.each([
  [{ addressBits: "16" }, "172.18.0.2/16"],
  [{}, undefined],
  [{ addressBits: "1" }, "172.18.0.2/1"],
  [{ addressBits: "32" }, "172.18.0.2/32"],
  [{ addressBits: "33" }, undefined],
  [{ addressBits: "0" }, undefined],
  [{ addressBits: "16", platformAddress: "10.89.0.2/24" }, "10.89.0.2/24"],
  [{ addressBits: "16", platformAddress: "10.89.0.2/24; reboot" }, undefined],
])("with %j, the address that the platform knows is %p", (labels, expected) => {
  expect(toSnapshots([image(labels)], [volume])[0]!.nodes![0]!.platformAddress).toBe(expected);
});

test.each([
  ["an image is missing", [image({ counts: "master=1 agent=1 public_agent=0" })], [volume]],
  ["a volume is missing", [image()], []],
  [
    "an image is still a draft",
    [
      {
        ...image(),
        RepoTags: [`localhost/cluster-e2e-snapshot:${creationId}-installed-master_0-draft`],
      },
    ],
    [volume],
  ],
  ["only a volume is there", [], [volume]],
  ["the address is no address", [image({ address: "--privileged" })], [volume]],
  [
    "the settings hold something else",
    [image({ settings: '{"volumes":["--privileged"]}' })],
    [volume],
  ],
] as const)("it is incomplete where %s", (_, images, volumes) => {
  expect(toSnapshots(images, volumes)).toMatchObject([{ name: "installed", nodes: undefined }]);
});

test("the nodes of a snapshot are in the order of roles, whatever order the engine lists them in", () => {
  const counts = "master=1 agent=1 public_agent=0";
  const agent = { ...image({ counts, role: "agent", volumeSize: "0" }) };
  const RepoTags = agent.RepoTags.map((tag) => tag.replace("master", "agent"));
  const [snapshot] = toSnapshots([{ ...agent, RepoTags }, image({ counts })], [volume]);
  expect(snapshot!.nodes!.map(({ role }) => role)).toEqual(["master", "agent"]);
});

test("an image or volume whose name is not that of its labels is left alone", () => {
  expect(toSnapshots([image({}, "other")], [{ ...volume, Name: "mine" }])).toEqual([]);
  expect(toSnapshots([{ ...image(), RepoTags: ["registry.example.com/innocent:1"] }], [])).toEqual(
    [],
  );
});

test("a snapshot without a readable size of its volumes has none, and a node that was published is so again", () => {
  const changed = image({ volumeSize: "much" });
  expect(toSnapshots([changed], [])[0]!.nodes).toMatchObject([
    { volumeKilobytes: 0, volume: undefined },
  ]);
});

test("snapshots are sorted by age; one without images has no age, and comes first", () => {
  const [onlyVolume] = toSnapshots([], [volume]);
  expect(createdAt(onlyVolume!)).toBeUndefined();
  const draft = {
    ...volume,
    Name: volume.Name.replace("installed", "z"),
    Labels: labelled({ ...part, snapshot: "z" }),
  };
  expect(toSnapshots([image()], [volume, draft]).map(({ name }) => name)).toEqual([
    "z",
    "installed",
  ]);
  const later = { ...image({ snapshot: "a" }, "a"), Created: "2026-01-02T00:00:00Z" };
  expect(toSnapshots([later, image()], [volume]).map(({ name }) => name)).toEqual([
    "installed",
    "a",
  ]);
});

test("a hostile label makes nothing of it ours", () => {
  for (const text of hostileTexts(14, 200).filter((each) => !/^[a-z0-9]*$/.test(each))) {
    for (const label of ["creationId", "snapshot", "role", "index"]) {
      const hostile = { ...volume, Labels: labelled({ ...part, [label]: text }) };
      expect(toSnapshots([image({ [label]: text })], [hostile])).toEqual([]);
    }
  }
});
