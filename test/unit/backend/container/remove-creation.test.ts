import { unmarked } from "../../../../src/outside-text.ts";
import { expect, test } from "bun:test";
import type { Engine } from "../../../../src/backend/container/engine/engine.ts";
import { engineKinds } from "../../../../src/backend/container/engine/engine-kinds.ts";
import { labelNames, nodeVolumeLabel } from "../../../../src/backend/container/records/labels.ts";
import {
  removeCreation,
  removeWithSnapshots,
  stopCreation,
} from "../../../../src/backend/container/remove-creation.ts";
import { scriptedClock } from "../../../support/scripted-clock.ts";

const { signal } = new AbortController();
const creation = { clusterId: "default", creationId: "0123456789abcdef" };
const networkName = `cluster-e2e-default-${creation.creationId}`;
/** The creation that it is a copy of. */
const source = "fedcba9876543210";
const networkId = "ab".repeat(32);
const volumeName = "ef".repeat(32);
const ownVolumes = `--filter=label=${nodeVolumeLabel}=${creation.creationId}`;
const idOf = (index: number): string => `c${index}`.padEnd(64, "0");

const labels = {
  [labelNames.clusterId]: creation.clusterId,
  [labelNames.creationId]: creation.creationId,
};
const describeContainer = (index: number, status: string) => ({
  Id: idOf(index),
  Name: `/cluster-e2e-default-agent_${index}`,
  Created: "2026-01-01T00:00:00Z",
  State: { Status: status, ExitCode: 0, OOMKilled: false, Error: "" },
  Config: { Labels: { ...labels, [labelNames.role]: "agent", [labelNames.index]: String(index) } },
  NetworkSettings: { Networks: { [networkName]: { IPAddress: "172.18.0.2" } }, Ports: {} },
});

/** An engine with containers of these states and their network. `isBusy` tells which removal fails, given how often it was tried. */
function openEngine(
  states: readonly string[],
  isBusy: (id: string, attempt: number) => boolean = () => false,
) {
  const containers = new Map(
    states.map((status, index) => [idOf(index), describeContainer(index, status)]),
  );
  const networks = new Set([networkId]);
  const volumes = new Set<string>();
  const networkLabels = { ...labels, [labelNames.copiedFrom]: source };
  const changes: string[] = [];
  const ask = async ({ words }: { readonly words: readonly string[] }): Promise<string> => {
    if (words[0] === "ps") return [...containers.keys()].join("\n");
    if (words[0] === "container") return JSON.stringify([...containers.values()]);
    if (words[0] === "volume")
      return words.includes(ownVolumes) && containers.size === 0 ? [...volumes].join("\n") : "";
    if (words[1] === "ls") return [...networks].join("\n");
    return JSON.stringify(
      [...networks].map((Id) => ({ Id, Name: networkName, Labels: networkLabels })),
    );
  };
  const change = async ({ words }: { readonly words: readonly string[] }): Promise<string> => {
    changes.push(words.join(" "));
    const id = words.at(-1) ?? "";
    const attempt = changes.filter((each) => each.endsWith(id)).length;
    if (isBusy(id, attempt)) throw new Error(`busy, attempt ${attempt}`);
    if (words[0] !== "kill") containers.delete(id);
    networks.delete(id);
    volumes.delete(id);
    return "";
  };
  const engine = { kind: engineKinds.docker, option: "", ask, change } as unknown as Engine;
  return { engine, changes, containers, networks, volumes };
}

test("containers go first, their network last", async () => {
  const { engine, changes } = openEngine(["running", "exited"]);
  const clock = scriptedClock();
  expect(await removeCreation(engine, creation, clock, signal)).toBeUndefined();
  const removal = ["rm", "--force", "--volumes"];
  expect(changes.map((words) => words.split(" "))).toEqual([
    [...removal, idOf(0)],
    [...removal, idOf(1)],
    ["network", "rm", networkId],
  ]);
  expect(clock.pauses).toEqual([]);
});

test("the volumes of nodes that somebody else has removed go before the network", async () => {
  const { engine, changes, volumes } = openEngine([]);
  volumes.add(volumeName).add("a-name-that-we-never-give");
  expect(await removeCreation(engine, creation, scriptedClock(), signal)).toBeUndefined();
  expect(changes).toEqual([`volume rm ${volumeName}`, `network rm ${networkId}`]);
});

test.each([
  ["container", idOf(0), [idOf(0), idOf(0), idOf(0), networkId]],
  ["network", networkId, [idOf(0), networkId, networkId, networkId]],
])("a %s that is busy is tried again, and the network goes last", async (_, busy, tried) => {
  const { engine, changes, networks } = openEngine(
    ["running"],
    (id, attempt) => id === busy && attempt < 3,
  );
  const clock = scriptedClock();
  expect(await removeCreation(engine, creation, clock, signal)).toBeUndefined();
  expect(changes.map((words) => words.split(" ").at(-1))).toEqual(tried);
  expect(clock.pauses).toHaveLength(2);
  expect(networks.size).toBe(0);
});

test("as long as one of many containers goes, the others are tried again", async () => {
  const { engine, containers } = openEngine(
    Array.from({ length: 5 }, () => "running"),
    (id, attempt) => attempt < 1 + 6 * Number(/^c(\d)/.exec(id)?.[1] ?? 0),
  );
  expect(await removeCreation(engine, creation, scriptedClock(), signal)).toBeUndefined();
  expect(containers.size).toBe(0);
});

test("after eight tries it says what is left, with the last reason alone", async () => {
  const { engine, changes } = openEngine(["running"], () => true);
  const left = await removeCreation(engine, creation, scriptedClock(), signal);
  expect(left).toContain(idOf(0).slice(0, 12));
  expect(left).toContain(networkId.slice(0, 12));
  expect(unmarked(left!)).toEndWith("(busy, attempt 8).");
  expect(changes).toHaveLength(8);
});

test("stopping ends what runs or is paused, and removes nothing", async () => {
  const { engine, changes, containers } = openEngine(["running", "exited", "paused", "created"]);
  await stopCreation(engine, creation, signal);
  expect(changes.toSorted()).toEqual([`kill ${idOf(0)}`, `kill ${idOf(2)}`]);
  expect(containers.size).toBe(4);
});

test("while snapshots are left, the network stays, because it makes the cluster findable", async () => {
  const { engine, containers, networks } = openEngine(["running"]);
  const ask: Engine["ask"] = async (request) =>
    request.words[0] === "images"
      ? Promise.reject(new Error("images failed"))
      : engine.ask(request, signal);
  const left = await removeWithSnapshots({ ...engine, ask }, creation, scriptedClock(), signal);
  expect(unmarked(left!)).toBe("Left behind: snapshots (images failed).");
  expect([containers.size, networks.size]).toEqual([0, 1]);
});

test("a copy takes the images of its source's deleted snapshots with it, and its network goes last", async () => {
  const { engine, changes } = openEngine(["running"]);
  const image = "ef".repeat(32);
  const imageLabels = {
    ...labels,
    [labelNames.creationId]: source,
    [labelNames.snapshot]: "installed",
  };
  const ask: Engine["ask"] = async (request) => {
    const [kind, ...words] = request.words;
    if (kind === "volume") return "";
    if (kind === "image") return JSON.stringify([{ Id: image, Config: { Labels: imageLabels } }]);
    if (kind !== "images") return engine.ask(request, signal);
    const isPresent =
      words.at(-1)?.endsWith(source) === true && !changes.includes(`image rm ${image}`);
    return isPresent ? image : "";
  };
  expect(
    await removeWithSnapshots({ ...engine, ask }, creation, scriptedClock(), signal),
  ).toBeUndefined();
  expect(changes.map((words) => words.split(" ").at(-1))).toEqual([idOf(0), image, networkId]);
});
