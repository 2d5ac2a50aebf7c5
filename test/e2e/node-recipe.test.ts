/**
 * The node image that `cluster-container` builds for Debian 12, with and without what the dcos layout needs in it. No registry is asked: the
 * base, made with debootstrap, stands under the name that the recipe has for it.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { buildArtifact } from "./support/artifacts.ts";
import { buildDcosArtifact } from "./support/dcos.ts";
import { docker, startTestContainers } from "./support/test-containers.ts";
import type { TestContainers } from "./support/test-containers.ts";

const base = "localhost/cluster-e2e-bare:debian-12";
const published = "docker.io/library/debian:12";
const built = "localhost/cluster-e2e-node";

const state: { containers?: TestContainers; isPublishedOurs?: boolean; imagesBefore?: ReadonlySet<string> } = {};
const containers = (): TestContainers => state.containers!;

const images = async (): Promise<readonly string[]> =>
  (await docker(["images", `--filter=reference=${built}`, "--format={{.Repository}}:{{.Tag}}"]))
    .split("\n")
    .filter((name) => name !== "");

beforeAll(async () => {
  state.containers = await startTestContainers();
  state.imagesBefore = new Set(await images());
  state.isPublishedOurs = (await docker(["images", "--quiet", published])) === "";
  if (state.isPublishedOurs) await docker(["tag", base, published]);
  // Docker inside of a container works on any machine with these: it loads images, no more.
  const settings = { "storage-driver": "vfs", bridge: "none", iptables: false, ip6tables: false };
  await Bun.write(join(containers().folder, "daemon.json"), JSON.stringify(settings));
}, 60_000);

afterAll(async () => {
  await state.containers?.[Symbol.asyncDispose]();
  const made = (await images()).filter((name) => state.imagesBefore?.has(name) !== true);
  for (const name of [...made, ...(state.isPublishedOurs === true ? [published] : [])]) await docker(["rmi", name]);
}, 120_000);

const nodes = "--public-agents 0 --linux-distribution debian-12".split(" ");

test("what the dcos layout needs is put into the image once, and no node installs it again", async () => {
  const id = containers().id("dcos");
  const artifact = await buildDcosArtifact("oss", "2.1.2", containers().folder);
  const volume = ["--custom-volume", `${containers().folder}/daemon.json:/etc/docker/daemon.json:ro`];
  const words = ["create", "-vv", "--variant", "oss", "-c", id, ...nodes, ...volume, artifact];
  const created = await containers().run(words, { limitMs: 1_500_000 });
  expect({ status: created.status, stderr: created.status === 0 ? "" : created.stderr }).toEqual({
    status: 0,
    stderr: "",
  });
  expect(created.stderr).toContain("Build the node image");
  expect(created.stderr).not.toContain("installing ");
  expect((await images()).filter((name) => name.startsWith(`${built}:debian-12-dcos-`))).not.toEqual([]);
  const waited = await containers().run(["wait", "-c", id, "--timeout", "5m"], { limitMs: 400_000 });
  expect({ status: waited.status, stderr: waited.status === 0 ? "" : waited.stderr }).toEqual({
    status: 0,
    stderr: "",
  });
  expect(await containers().run(["destroy", "-c", id])).toMatchObject({ status: 0 });

  const dry = await containers().run(["create", "--variant", "oss", "--dry-run", "-c", id, ...nodes, artifact]);
  expect(dry.stdout).toMatch(/Image +localhost\/cluster-e2e-node:debian-12-dcos-[0-9a-f]{16} \(present\)/);
}, 2_400_000);

test("the cluster layout runs on an image of its own, which shares all but the last step", async () => {
  const id = containers().id("cluster");
  const artifact = await buildArtifact("oss", containers().folder);
  const created = await containers().run(["create", "--variant", "oss", "-c", id, ...nodes, artifact], {
    limitMs: 900_000,
  });
  expect({ status: created.status, stderr: created.status === 0 ? "" : created.stderr }).toEqual({
    status: 0,
    stderr: "",
  });
  const waited = await containers().run(["wait", "-c", id, "--timeout", "5m"], { limitMs: 400_000 });
  expect({ status: waited.status, stderr: waited.status === 0 ? "" : waited.stderr }).toEqual({
    status: 0,
    stderr: "",
  });
  const [own] = (await images()).filter((name) => /:debian-12-[0-9a-f]{16}$/.test(name));
  const [dcos] = (await images()).filter((name) => name.includes(":debian-12-dcos-"));
  const layersOf = async (name: string): Promise<readonly string[]> =>
    JSON.parse(await docker(["image", "inspect", "--format={{json .RootFS.Layers}}", name])) as readonly string[];
  const [fewer, more] = [await layersOf(own!), await layersOf(dcos!)];
  expect(more.slice(0, fewer.length)).toEqual([...fewer]);
  expect(await containers().run(["destroy", "-c", id])).toMatchObject({ status: 0 });
}, 1_500_000);

test("a build that fails says what the failing tool said last, and where", async () => {
  // Podman or Docker would ask the registry for this base; here it is one without a package manager.
  const bad = "docker.io/library/debian:11";
  expect(await docker(["images", "--quiet", bad])).toBe("");
  await Bun.$`tar -c -C ${containers().folder} daemon.json | docker import - ${bad}`.quiet();
  try {
    const artifact = await buildDcosArtifact("oss", "2.1.2", containers().folder);
    const words = [
      "create",
      "--variant",
      "oss",
      "-c",
      containers().id("bad"),
      "--linux-distribution",
      "debian-11",
      artifact,
    ];
    const failed = await containers().run(words, { limitMs: 120_000 });
    expect(failed.stderr).toContain("docker build failed (at \"RUN printf '#!/bin/sh");
    expect(failed.stderr).toContain("[image-not-found]");
    expect(failed.stderr).not.toContain("policy-rc.d && chmod");
    expect(failed.status).toBe(1);
  } finally {
    await docker(["rmi", bad]);
  }
}, 180_000);
