/** What all backends promise, for containers, and what containers promise with each engine. */
import { beforeAll, expect, test } from "bun:test";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { commandsOf, type LocalSubject, testConformance } from "./conformance.ts";
import type { TestContainers } from "./test-containers.ts";

interface Engine {
  readonly name: "docker" | "podman";
  readonly nodeImage: string;
}

/** Their nodes have limits, and a folder of this computer as a volume. */
export function testContainerConformance(
  containers: () => TestContainers,
  artifact: () => string,
  engine: Engine,
): LocalSubject {
  const shared = (): string => join(containers().folder, "shared");
  const subject: LocalSubject = {
    backend: containers,
    artifact,
    id: () => containers().id("flow"),
    program: "cluster-container",
    suffix: engine.name === "podman" ? " --engine podman" : "",
    options: () => [
      ..."--variant oss --agents 2 --memory 1g --cpus 1.5 --custom-volume".split(" "),
      `${shared()}:/shared:ro`,
      "--node-image",
      engine.nodeImage,
    ],
    agents: 2,
    publicAgents: 1,
    checks:
      "engine,node addresses,storage driver,image space,memory,cgroups,inotify,mounts,selinux,metadata service,leftovers",
    plan: [`${engine.nodeImage} (present)`, "4: 1 master, 2 agents, 1 public agent"],
    things: (id) => containers().things(id),
    size: 5,
    kill: (node) => containers().engine.run(["kill", node.id]),
    killed: /status 137/,
  };
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
