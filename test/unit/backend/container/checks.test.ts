import { expect, test } from "bun:test";
import { engineCheck, leftoversCheck } from "../../../../src/backend/container/checks.ts";
import type { ContainerFacts } from "../../../../src/backend/container/host-checks.ts";
import { engineKinds } from "../../../../src/backend/container/engine/engine-kinds.ts";
import { labelNames } from "../../../../src/backend/container/records/labels.ts";
import { isMarked, unmarked } from "../../../../src/outside-text.ts";
import { outcomeText } from "../../../support/outcome-text.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { scriptedClock } from "../../../support/scripted-clock.ts";

/** What the check says about an engine of this version. */
async function judged(name: "docker" | "podman", version: string): Promise<string> {
  const kind = engineKinds[name];
  const facts = {
    engine: async () => ({ kind }),
    engineFacts: async () => ({ version, operatingSystem: "Debian" }),
  };
  const check = engineCheck(facts as unknown as ContainerFacts);
  return outcomeText(await check.run(neverAborted));
}

test.each([
  ["docker", "20.10.0"],
  ["docker", "20.11.3"],
  ["docker", "23.0.1"],
  ["docker", "27"],
  ["podman", "4.0.0"],
  ["podman", "5.4"],
] as const)("%s %s is new enough", async (name, version) => {
  expect(await judged(name, version)).toBe(`pass: ${engineKinds[name].title} ${version} (Debian)`);
});

test.each([
  ["docker", "20.9.9", "20.10"],
  ["docker", "19.20.0", "20.10"],
  ["docker", "20", "20.10"],
  ["podman", "3.4.4", "4.0"],
] as const)(
  "%s %s is too old, and the advice is how to install a newer one",
  async (name, version, least) => {
    const text = await judged(name, version);
    expect(text).toStartWith(`warn: ${engineKinds[name].title} ${version} is older than ${least}`);
    expect(text).toContain(engineKinds[name].advice.install);
  },
);

test("an engine's version and system are quoted as one line without escape sequences", async () => {
  const [version, operatingSystem] = ["27.0\u001B[2J\n", "Debian\u009B2J\n::error::x"];
  const facts = {
    engine: async () => ({ kind: engineKinds.docker }),
    engineFacts: async () => ({ version, operatingSystem }),
  };
  const { message } = await engineCheck(facts as unknown as ContainerFacts).run(neverAborted);
  expect(unmarked(message)).toBe("Docker 27.0\uFFFD[2J (Debian\uFFFD2J : :error::x)");
  expect(isMarked(message)).toBe(true);
});

const creationIds = ["0123456789abcdef", "fedcba9876543210"] as const;
const networks = creationIds.map((creationId, place) => ({
  clusterId: `cluster-${place}`,
  creationId,
  counts: undefined,
  variant: undefined,
  distribution: undefined,
}));
const containers = networks.map(({ clusterId, creationId }) => ({
  clusterId,
  creationId,
  id: creationId,
  role: "master",
  index: 0,
  status: "running",
  createdAt: undefined,
}));

interface Saved {
  readonly creationId: string;
  readonly nodes?: number;
  readonly hasImage?: boolean;
  readonly hasVolume?: boolean;
}

/** What the check says about the snapshot `installed` of a cluster, in an engine with two clusters. */
async function foundOf(
  { creationId, nodes = 1, hasImage = true, hasVolume = true }: Saved,
  option = "--engine docker",
) {
  const place = creationIds.findIndex((each) => each === creationId);
  const labels = {
    [labelNames.clusterId]: place === -1 ? "gone" : `cluster-${place}`,
    [labelNames.creationId]: creationId,
    [labelNames.snapshot]: "installed",
    [labelNames.role]: "master",
    [labelNames.index]: "0",
    [labelNames.counts]: `master=${nodes} agent=0 public_agent=0`,
    [labelNames.settings]: '{"volumes": []}',
    [labelNames.address]: "172.18.0.2",
  };
  const tag = `localhost/cluster-e2e-snapshot:${creationId}-installed-master_0`;
  const image = { RepoTags: [tag], Created: "2026-01-01T00:00:00Z", Config: { Labels: labels } };
  const volume = { Name: `cluster-e2e-snapshot-${creationId}-installed-master_0`, Labels: labels };
  const answers: Readonly<Record<string, string>> = {
    "images --quiet": hasImage ? "1".repeat(64) : "",
    "image inspect": JSON.stringify([image]),
    "volume ls": hasVolume ? volume.Name : "",
    "volume inspect": JSON.stringify([volume]),
  };
  const ask = async ({ words }: { readonly words: readonly string[] }) =>
    answers[words.slice(0, 2).join(" ")] ?? "";
  const facts = {
    engine: async () => ({ kind: engineKinds.docker, option, ask }),
    engineFacts: async () => ({}),
    root: async () => "/nowhere",
    inventory: async () => ({ networks, containers, abandoned: new Set(), foreignResources: [] }),
  };
  const check = leftoversCheck(facts as unknown as ContainerFacts, scriptedClock(), neverAborted);
  return outcomeText(await check.run(neverAborted));
}

test.each(creationIds)(
  "a complete snapshot of the cluster of creation %s is no remainder",
  async (creationId) => {
    expect(await foundOf({ creationId })).toBe("pass: None");
  },
);

test.each([
  [
    "--engine docker",
    "cluster-container snapshot --cluster-id cluster-1 --engine docker delete installed",
  ],
  ["", "cluster-container snapshot --cluster-id cluster-1 delete installed"],
])(
  "an incomplete snapshot is reported with the command that deletes it: engine option %j",
  async (option, command) => {
    expect(await foundOf({ creationId: creationIds[1], nodes: 2 }, option)).toBe(
      `warn: The snapshot "installed" of cluster "cluster-1" is incomplete. → ${command}`,
    );
  },
);

const image = "docker image rm localhost/cluster-e2e-snapshot:00000000000000c1-installed-master_0";
const volume = "docker volume rm cluster-e2e-snapshot-00000000000000c1-installed-master_0";

test.each([
  ["images and volumes", {}, `${image}; ${volume}`],
  ["images", { hasVolume: false }, image],
  ["volumes", { hasImage: false }, volume],
])(
  "a snapshot that has outlived its cluster is reported with the commands that remove its %s",
  async (_, parts, remedy) => {
    expect(await foundOf({ creationId: "00000000000000c1", ...parts })).toBe(
      `warn: The snapshot "installed" of cluster "gone" has outlived it. → ${remedy}`,
    );
  },
);
