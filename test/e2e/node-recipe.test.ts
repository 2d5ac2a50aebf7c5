/**
 * The node images that `cluster-container` builds for Debian 11, 12 and 13, with and without what the dcos layout needs
 * in them. They need no registry: bases built with debootstrap have the names that the recipes use.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { buildArtifact } from "./support/artifacts.ts";
import { podmanLack } from "./support/container-engine.ts";
import { buildDcosArtifact } from "./support/dcos.ts";
import { installsOnNodes } from "./support/installs-on-nodes.ts";
import { debianBase as base, nameDebianBase } from "./support/published-debian.ts";
import { docker, startTestContainers } from "./support/test-containers.ts";
import type { TestContainers } from "./support/test-containers.ts";

const releases = ["11", "12", "13"] as const;
const built = "localhost/cluster-e2e-node";
const limitMs = 900_000;

const state: {
  onDocker?: TestContainers;
  onPodman?: TestContainers;
  artifacts?: Readonly<Record<"cluster" | "dcos", string>>;
  /** Docker's images before the test. */
  before: ReadonlySet<string>;
} = { before: new Set() };

/** Names of Docker's images that these tests could make. */
const dockerImages = async (): Promise<readonly string[]> =>
  (await docker(["images", "--format={{.Repository}}:{{.Tag}}"]))
    .split("\n")
    .filter((name) => isOurs(name) || releases.some((release) => base(release).endsWith(name)));

/** examples.test.ts, which may run at the same time, builds images for folders. */
const isOurs = (name: string): boolean =>
  name.startsWith(`${built}:debian-`) && !name.includes("-folder-");

beforeAll(async () => {
  state.onDocker = await startTestContainers();
  const { folder } = state.onDocker;
  state.before = new Set(await dockerImages());
  const [cluster, dcos] = await Promise.all([
    buildArtifact("oss", folder),
    buildDcosArtifact("oss", "2.1.2", folder),
    ...releases.map(nameDebianBase),
  ]);
  state.artifacts = { cluster, dcos };
  if (podmanLack === undefined) state.onPodman = await startTestContainers("podman", base("12"));
  // Docker inside a container works on any machine with these: it only loads images.
  const settings = { "storage-driver": "vfs", bridge: "none", iptables: false, ip6tables: false };
  await Bun.write(join(folder, "daemon.json"), JSON.stringify(settings));
}, limitMs);

afterAll(async () => {
  await state.onPodman?.[Symbol.asyncDispose]();
  await state.onDocker?.[Symbol.asyncDispose]();
  for (const name of await dockerImages()) if (!state.before.has(name)) await docker(["rmi", name]);
});

const createWords = (
  containers: TestContainers,
  layout: "cluster" | "dcos",
  distribution: string,
) => [
  ..."create --variant oss --agents 0 --public-agents 0 --linux-distribution".split(" "),
  distribution,
  "-c",
  containers.id(`${layout}-${distribution}`),
  "--custom-volume",
  `${state.onDocker!.folder}/daemon.json:/etc/docker/daemon.json:ro`,
  state.artifacts![layout],
];

/**
 * Creates a cluster of one master, waits until it is ready and destroys it. Returns the name of its image, and what
 * `create` said.
 */
async function runCluster(
  containers: TestContainers,
  layout: "cluster" | "dcos",
  distribution: string,
): Promise<{ readonly image: string; readonly said: string }> {
  const id = containers.id(`${layout}-${distribution}`);
  const words = createWords(containers, layout, distribution);
  await nameDebianBase(distribution.replace("debian-", ""));
  const created = await containers.run([...words, "-vv"], { limitMs });
  expect(created.status, created.stderr).toBe(0);
  const waited = await containers.run(["wait", "-c", id, "--timeout", "5m"], { limitMs });
  expect(waited.status, waited.stderr).toBe(0);
  expect(await containers.run(["destroy", "-c", id])).toMatchObject({ status: 0 });
  const dry = await containers.run([...words, "--dry-run"]);
  const [, image = ""] = /Image +(\S+) \(present\)/.exec(dry.stdout) ?? [];
  return { image, said: created.stderr };
}

/** An image that Docker had before the test is not built again. */
function expectBuilt(
  containers: TestContainers,
  { image, said }: { readonly image: string; readonly said: string },
) {
  const wasThere = containers === state.onDocker && state.before.has(image);
  expect(said.includes("Build the node image"), said).toBe(!wasThere);
}

async function layersOf({ engine }: TestContainers, image: string): Promise<readonly string[]> {
  const text = await engine.run(["image", "inspect", "--format={{json .RootFS.Layers}}", image]);
  return JSON.parse(text) as readonly string[];
}

/** Runs both layouts, each on an image of its own. */
async function runBothLayouts(containers: TestContainers): Promise<void> {
  const cluster = await runCluster(containers, "cluster", "debian-12");
  expectBuilt(containers, cluster);
  expect(cluster.image).toMatch(/:debian-12-[0-9a-f]{16}$/);
  const dcos = await runCluster(containers, "dcos", "debian-12");
  expect(dcos.image).toMatch(/:debian-12-dcos-[0-9a-f]{16}$/);
  expectBuilt(containers, dcos);
  expect(installsOnNodes(dcos.said)).toEqual([]);
  const [fewer, more] = [
    await layersOf(containers, cluster.image),
    await layersOf(containers, dcos.image),
  ];
  expect(more.slice(0, -1)).toEqual([...fewer]);
}

describe("on Docker", () => {
  // Shows R112.
  test.concurrent("both layouts run on Debian 12, and their images share all but the last step", async () => {
    await runBothLayouts(state.onDocker!);
  });

  // Shows R112.
  test.concurrent.each(["debian-11", "debian-13"])(
    "what the dcos layout needs is put into the image of %s once, and no node installs it again",
    async (distribution) => {
      const ran = await runCluster(state.onDocker!, "dcos", distribution);
      const { image, said } = ran;
      expect(image).toMatch(new RegExp(`^${built}:${distribution}-dcos-[0-9a-f]{16}$`));
      expectBuilt(state.onDocker!, ran);
      expect(installsOnNodes(said)).toEqual([]);
    },
  );

  // Shows R112.
  test.concurrent("a build that fails says what the failing tool said last, and where", async () => {
    const { folder, run } = state.onDocker!;
    // The engine would ask the registry for this base; here it is one without a package manager.
    const bad = "docker.io/library/ubuntu:22.04";
    expect(await docker(["images", "--quiet", bad])).toBe("");
    await Bun.$`tar -c -C ${folder} daemon.json | docker import - ${bad}`.quiet();
    try {
      const failed = await run(createWords(state.onDocker!, "dcos", "ubuntu-22"), {
        limitMs,
      });
      expect(failed.stderr).toContain("docker build failed (at \"RUN printf '#!/bin/sh");
      expect(failed.stderr).toContain("[image-not-found]");
      expect(failed.stderr).not.toContain("policy-rc.d && chmod");
      expect(failed.status).toBe(1);
      expect(await docker(["ps", "--all", "--quiet", `--filter=ancestor=${bad}`])).toBe("");
    } finally {
      await docker(["rmi", bad]);
    }
  });
});

describe.skipIf(podmanLack !== undefined)(`on Podman (${podmanLack ?? "here"})`, () => {
  test.concurrent("both layouts run on Debian 12, and their images share all but the last step", async () => {
    await runBothLayouts(state.onPodman!);
  });
});
