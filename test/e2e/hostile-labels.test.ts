/** Our labels on things that this program did not create: an image passes its labels on to each container. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { podmanLack } from "./support/container-engine.ts";
import { nodeImage, startTestContainers } from "./support/test-containers.ts";
import type { TestContainers } from "./support/test-containers.ts";

const creationId = "0123456789abcdef";

function attackWith(name: "docker" | "podman"): void {
  const state: { containers?: TestContainers; image?: string; made: string[] } = { made: [] };
  const containers = (): TestContainers => state.containers!;
  const engine = (...words: readonly string[]): Promise<string> => containers().engine.run(words);

  const labelsOf = (clusterId: string): Readonly<Record<string, string>> => ({
    "cluster-id": clusterId,
    "creation-id": creationId,
    role: "master",
    index: "0",
    counts: "master=1 agent=0 public_agent=0",
    variant: "oss",
    distribution: "debian-12",
    reach: "direct",
  });

  beforeAll(async () => {
    state.containers = await startTestContainers(name);
    const lines = Object.entries(labelsOf(containers().id("theirs"))).map(
      ([key, value]) => `LABEL cluster-e2e.${key}="${value}"`,
    );
    state.image = `localhost/${containers().id("image")}:1`;
    const context = `${containers().folder}/context`;
    await Bun.write(`${context}/Containerfile`, [`FROM ${nodeImage}`, ...lines, ""].join("\n"));
    await engine("build", `--tag=${state.image}`, `--file=${context}/Containerfile`, context);
  });

  afterAll(async () => {
    // Most are gone by now, which the engine may call an error.
    await engine("rm", "--force", "--volumes", ...state.made).catch(() => "");
    if (state.image !== undefined) await engine("rmi", "--force", state.image).catch(() => "");
    await state.containers?.[Symbol.asyncDispose]();
  });

  async function makeContainer(...words: readonly string[]): Promise<string> {
    const id = await engine("create", ...words, state.image!, "/bin/sleep", "600");
    state.made.push(id);
    return id;
  }

  const isThere = async (id: string): Promise<boolean> =>
    engine("container", "inspect", "--format={{.Id}}", id).then(
      (text) => text.trim() === id.trim(),
      () => false,
    );

  /** None of the commands may know it as a cluster, or touch it. */
  async function expectLeftAlone(id: string): Promise<void> {
    const clusterId = containers().id("theirs");
    const listed = await containers().run(["list", "--quiet"]);
    expect(listed.status).toBe(0);
    expect(listed.stdout.split("\n")).not.toContain(clusterId);
    for (const command of ["inspect", "destroy", "logs"]) {
      const ran = await containers().run([command, "-c", clusterId]);
      expect([command, ran.status, ran.stdout]).toEqual([command, 3, ""]);
    }
    expect(await isThere(id)).toBe(true);
  }

  // Shows R134.
  test("a container of an image with our labels is neither listed nor removed", async () => {
    const id = await makeContainer();
    await expectLeftAlone(id);
    const told = await containers().run(["list", "-v"]);
    expect(told.stderr).toMatch(/container \S+: its name does not match the node in its labels/);
    const doctor = await containers().run(["doctor"]);
    expect(doctor.stdout + doctor.stderr).toContain(
      "its name does not match the node in its labels",
    );
  });

  test("one that has a node's name as well is left alone, since it is in no cluster's network", async () => {
    const id = await makeContainer(`--name=cluster-e2e-${containers().id("theirs")}-master_0`);
    await expectLeftAlone(id);
    expect((await containers().run(["list", "-v"])).stderr).toContain(
      "it is not in the network of the cluster",
    );
    await engine("rm", "--force", id);
  });

  test("nor is a network of the right name enough, where that has no labels", async () => {
    const clusterId = containers().id("theirs");
    const network = `cluster-e2e-${clusterId}-${creationId}`;
    await engine("network", "create", network);
    const id = await makeContainer(
      `--name=cluster-e2e-${clusterId}-master_0`,
      `--network=${network}`,
    );
    await expectLeftAlone(id);
    await engine("rm", "--force", id);
    await engine("network", "rm", network);
  });

  test("destroying a cluster removes its own containers, and none that only claims to belong to it", async () => {
    const clusterId = containers().id("theirs");
    const network = `cluster-e2e-${clusterId}-${creationId}`;
    const labels = Object.entries(labelsOf(clusterId)).map(
      ([key, value]) => `--label=cluster-e2e.${key}=${value}`,
    );
    await engine("network", "create", ...labels, network);
    const own = await makeContainer(
      `--name=cluster-e2e-${clusterId}-master_0`,
      `--network=${network}`,
    );
    const foreign = await makeContainer();
    const ran = await containers().run(["destroy", "-c", clusterId]);
    expect([ran.status, await isThere(own), await isThere(foreign)]).toEqual([0, false, true]);
    expect(await engine("network", "ls", "--quiet", `--filter=name=${network}`)).toBe("");
    await engine("rm", "--force", foreign);
  });

  test("labels that would lead elsewhere as paths are nobody's", async () => {
    const clusterId = containers().id("paths");
    const labels = Object.entries({ ...labelsOf(clusterId), "creation-id": "x/../../../../.ssh" });
    const words = labels.map(([key, value]) => `--label=cluster-e2e.${key}=${value}`);
    const id = await makeContainer(...words, `--name=cluster-e2e-${clusterId}-master_0`);
    expect((await containers().run(["list", "--quiet"])).stdout.split("\n")).not.toContain(
      clusterId,
    );
    expect((await containers().run(["inspect", "-c", clusterId])).status).toBe(3);
    expect((await containers().run(["list", "-v"])).stderr).toContain(
      "its label cluster-e2e.creation-id is malformed",
    );
    await engine("rm", "--force", id);
  });
}

describe("docker", () => attackWith("docker"));
describe.skipIf(podmanLack !== undefined)(`podman ${podmanLack ?? ""}`, () => attackWith("podman"));
