/** What all backends promise, for containers, and what containers promise with each engine. */
import { beforeAll, expect, test } from "bun:test";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { commandsOf, type LocalSubject, testConformance } from "./conformance.ts";
import type { Witness } from "./snapshot-conformance.ts";
import type { TestContainers } from "./test-containers.ts";

interface Cluster {
  readonly name: string;
  readonly engine?: "podman";
  readonly agents: number;
  readonly publicAgents: number;
  readonly nodeImage: string;
}

/** A cluster whose nodes have limits. */
export function containerSubject(
  containers: () => TestContainers,
  artifact: () => string,
  { name, engine, agents, publicAgents, nodeImage }: Cluster,
  more: () => readonly string[] = () => [],
): LocalSubject {
  const counts = ["--agents", String(agents), "--public-agents", String(publicAgents)];
  return {
    backend: containers,
    artifact,
    id: () => containers().id(name),
    program: "cluster-container",
    suffix: engine === undefined ? "" : ` --engine ${engine}`,
    options: () => [
      ..."--variant oss --memory 1g --cpus 1.5 --node-image".split(" "),
      nodeImage,
      ...counts,
      ...more(),
    ],
    agents,
    publicAgents,
    checks:
      "engine,node addresses,storage driver,image space,memory,cgroups,inotify,mounts,selinux,metadata service,leftovers",
    plan: [`${nodeImage} (present)`, `${1 + agents + publicAgents}: 1 master, `],
    things: (id) => containers().things(id),
    // With the network.
    size: 2 + agents + publicAgents,
    kill: (node) => containers().engine.run(["kill", node.id]),
    killed: /status 137/,
  };
}

/** Tests a cluster that has a folder of this computer as a volume. */
export function testContainerConformance(
  containers: () => TestContainers,
  artifact: () => string,
  engine: Pick<Cluster, "engine" | "nodeImage">,
): LocalSubject {
  const shared = (): string => join(containers().folder, "shared");
  const subject = containerSubject(
    containers,
    artifact,
    { name: "flow", agents: 2, publicAgents: 1, ...engine },
    () => ["--custom-volume", `${shared()}:/shared:ro`],
  );
  beforeAll(async () => {
    await mkdir(shared());
    await Bun.write(join(shared(), "note"), "from outside\n");
  });
  testConformance(subject);
  testNodes(subject, containers);
  return subject;
}

function testNodes(subject: LocalSubject, containers: () => TestContainers): void {
  const { on, ask, nodeOf } = commandsOf(subject);

  test("nodes have the volume and the limits, and find each other by name", async () => {
    expect(await on("agent_1", "cat /shared/note")).toBe("from outside");
    expect((await ask(["run", "touch /shared/x"])).status).not.toBe(0);
    expect(await on("master_0", "getent hosts public-agent-0")).toContain("public-agent-0");
    const format = "--format={{.HostConfig.Memory}} {{.HostConfig.NanoCpus}}";
    const { id } = await nodeOf("master_0");
    expect(await containers().engine.run(["container", "inspect", format, id])).toBe(
      "1073741824 1500000000",
    );
  });
}

/** Snapshots keep the volumes of the nodes and their limits, and which units begin. */
export const containerWitness = (
  subject: LocalSubject,
  containers: () => TestContainers,
): Witness => {
  const { on, nodeOf } = commandsOf(subject);
  return {
    plant: () =>
      on("agent_0", "mkdir -p /var/lib/docker/deep; echo saved >/var/lib/docker/deep/note"),
    spoil: "rm -r /var/lib/docker/deep; touch /var/lib/docker/later; systemctl disable slurmd",
    check: async () => {
      expect(await on("agent_0", "cat /var/lib/docker/deep/note; ls /var/lib/docker")).toBe(
        "saved\ndeep",
      );
      const { id } = await nodeOf("agent_0");
      const format = "--format={{.HostConfig.Memory}}";
      expect(await containers().engine.run(["inspect", format, id])).toBe("1073741824");
    },
  };
};
