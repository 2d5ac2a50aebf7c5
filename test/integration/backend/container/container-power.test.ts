/** Nodes of scripted engines that stop and start again. */
import { writeFile } from "node:fs/promises";
import { expect } from "bun:test";
import { creationFiles } from "../../../../src/store/creation-folder.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { type Machine, checks, creationId, openRunning, statuses } from "./scripted-machine.ts";

const network = `cluster-e2e-own-${creationId}`;

/** The calls that change something, with the options that matter. */
const changes = ({ world }: Pick<Machine, "world">): readonly string[] =>
  world.engine.calls
    .filter(
      ([word = "", next]) =>
        ["run", "start", "rm", "kill"].includes(word) || next?.endsWith("connect") === true,
    )
    .map((words) => words.join(" "));

checks("nodes are told to pause, continue and shut down, and have time for it", async () => {
  await using running = await openRunning("docker");
  const { backend, world, agent, ids } = running;
  const cluster = await running.find();
  world.engine.calls.length = 0;
  await backend.local.power.pause(cluster, [agent], neverAborted);
  await backend.local.power.resume(cluster, [agent], neverAborted);
  await backend.local.power.shutDown(cluster, [agent], neverAborted);
  expect(world.engine.calls.map((words) => words.join(" "))).toEqual([
    `pause ${agent.id}`,
    `unpause ${agent.id}`,
    `stop --time=120 ${agent.id}`,
  ]);
  expect(ids[1]).toStartWith(agent.id);
  expect(statuses(running)).toEqual(["running", "exited"]);
  // Their clock is this computer's: nobody may set it.
  expect(backend.local.power.stopsClocks).toBe(false);
});

checks.each(["docker", "podman"] as const)(
  "%s is asked for the node's former address",
  async (name) => {
    await using running = await openRunning(name);
    const { backend, master, agent, ids } = running;
    const before = await running.find();
    await backend.local.power.cutPower(before, [master, agent], neverAborted);
    await running.start("agent");
    expect(statuses(running)).toEqual(["exited", "running"]);
    expect(changes(running)).toEqual([
      `network disconnect ${network} ${ids[1]}`,
      `network connect --ip=${agent.ssh.host} --alias=agent-0 ${network} ${ids[1]}`,
      `start ${ids[1]}`,
    ]);
    await running.start("master");
    expect((await running.find()).nodes).toEqual(before.nodes);
  },
);

checks(
  "a node that gets another address is stopped again, because the others know the former one",
  async () => {
    await using running = await openRunning("docker");
    const { backend, world, agent, ids } = running;
    await backend.local.power.cutPower(await running.find(), [agent], neverAborted);
    world.engine.movesContainers = true;
    const failure = await failureOf(running.start("agent"));
    expect(failure).toMatchObject({ id: "engine-failed", facts: { nodes: ["agent_0"] } });
    expect(failure.message).toContain(agent.ssh.host);
    expect(changes(running).at(-1)).toBe(`kill ${ids[1]}`);
    expect(statuses(running)).toEqual(["running", "exited"]);
  },
);

checks(
  "a stopped cluster whose network was pruned is still there, starts at its addresses, or is removed",
  async () => {
    await using running = await openRunning("docker");
    const { backend, world, master, agent, directory } = running;
    const { engine } = world;
    await writeFile(creationFiles(directory).privateKey, "");
    const before = await running.find();
    const [{ labels, range }] = engine.networks as [(typeof engine.networks)[number]];
    const prune = async (): Promise<void> => {
      await backend.local.power.cutPower(await running.find(), [master, agent], neverAborted);
      await engine.run(["network", "rm", network], new Uint8Array());
      expect(engine.networks).toEqual([]);
    };
    await prune();
    expect(await running.find()).toMatchObject({
      state: "stopped",
      requested: before.requested,
      nodes: [{}, {}],
    });
    expect((await backend.list(neverAborted)).map(({ id }) => id)).toEqual(["own"]);
    expect(await failureOf(running.plan())).toMatchObject({ id: "cluster-exists" });
    await running.start("master", "agent");
    expect((await running.find()).nodes).toEqual(before.nodes);
    expect(engine.networks).toMatchObject([{ name: network, range, labels }]);

    await prune();
    await engine.run(["network", "create", `--subnet=${range}`, "other"], new Uint8Array());
    const failure = await failureOf(running.start("master"));
    expect(failure).toMatchObject({
      id: "capacity-lacking",
      hint: expect.stringContaining("docker network ls"),
    });
    expect(failure.message).toContain(range);
    await backend.remove(await running.find(), neverAborted);
    expect([statuses(running), engine.networks.map(({ name }) => name)]).toEqual([[], ["other"]]);
  },
);

checks(
  "containers without their network are a cluster's only if this computer has a record of it",
  async () => {
    await using running = await openRunning("docker");
    const { backend, world, master, agent } = running;
    await backend.local.power.cutPower(await running.find(), [master, agent], neverAborted);
    await world.engine.run(["network", "rm", network], new Uint8Array());
    expect(await backend.find("own", neverAborted)).toBeUndefined();
  },
);
