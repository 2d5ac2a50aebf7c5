/** Clusters in the Docker and the Podman of Debian 13, and files that move between them. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { bareNodeImage } from "./support/container-engine.ts";
import { newerLack, type NewerComputer, startNewerComputer } from "./support/newer-engines.ts";

const state: { computer?: NewerComputer } = {};
const computer = (): NewerComputer => state.computer!;

const ask = async (engine: string, line: string): Promise<string> => {
  const [command = "", ...words] = line.split(" ");
  const ended = await computer().ask([command, "--engine", engine, ...words]);
  expect(ended.status, `${line}: ${ended.stderr}`).toBe(0);
  return ended.stdout;
};

beforeAll(async () => {
  if (newerLack === undefined) state.computer = await startNewerComputer();
}, 1_000_000);
afterAll(async () => {
  await state.computer?.[Symbol.asyncDispose]();
});

async function expectNothingLeft(engine: string, ownNetworks: readonly string[]): Promise<void> {
  const { program } = computer();
  expect(await program(engine, "ps", "--all", "--quiet")).toBe("");
  expect(await program(engine, "volume", "ls", "--quiet")).toBe("");
  const networks = await program(engine, "network", "ls", "--format={{.Name}}");
  expect(networks.split("\n").toSorted()).toEqual([...ownNetworks]);
}

test.skipIf(newerLack !== undefined).each([
  ["docker", 26, ["bridge", "host", "none"]],
  ["podman", 5, ["podman"]],
] as const)(
  `a cluster lives in %s of Debian 13, and leaves a file alone (${newerLack ?? "as root"})`,
  async (engine, least, ownNetworks) => {
    const version = await computer().program(engine, "--version");
    expect(Number(/\d+/.exec(version)![0])).toBeGreaterThanOrEqual(least);
    expect((await computer().ask(["doctor", "--engine", engine])).stdout).toMatch(/✔ engine/);
    const counts = "--masters 1 --agents 1 --public-agents 0 --memory 400m --wait --timeout 14m";
    await ask(engine, `create -c a ${counts} --node-image ${bareNodeImage} example:bare`);
    expect(await ask(engine, "run -c a --node agent_0 hostname")).toBe("agent-0\n");
    const address = await ask(engine, "run -c a --node agent_0 hostname -I");
    await ask(engine, "node stop agent_0 -c a");
    await ask(engine, "node start agent_0 -c a");
    expect(await ask(engine, "run -c a --node agent_0 hostname -I")).toBe(address);
    await ask(engine, "fault disk agent_0 --fill /dev/shm --for 2s --wait -c a");
    await Bun.write(join(computer().folder, "sent"), engine);
    await ask(engine, "cp /exchange/sent agent_0:/root/sent -c a");
    await ask(engine, "snapshot create s -c a");
    await ask(engine, "create -c b --from a:s");
    expect(await ask(engine, "run -c b --node agent_0 cat /root/sent")).toBe(engine);
    await ask(engine, `snapshot save s /exchange/${engine}.zst -c a`);
    await ask(engine, `logs -c a --output-dir /exchange/logs-${engine}`);
    const journal = Bun.file(join(computer().folder, `logs-${engine}`, "agent_0.journal.txt"));
    expect(await journal.text()).not.toBe("");
    for (const id of ["b", "a"]) await ask(engine, `destroy -c ${id} --yes`);
    await expectNothingLeft(engine, ownNetworks);
  },
);

test.skipIf(newerLack !== undefined).each([
  ["docker", "podman"],
  ["podman", "docker"],
])(`a file of %s becomes a cluster in %s (${newerLack ?? "as root"})`, async (from, engine) => {
  await ask(engine, `create -c moved --from /exchange/${from}.zst`);
  expect(await ask(engine, "run -c moved --node agent_0 cat /root/sent")).toBe(from);
  await ask(engine, "destroy -c moved --yes");
});
