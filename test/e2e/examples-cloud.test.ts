/** Two example platforms, and a partition, on the local cloud, whose machines reach no mirror: their image has the packages. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { type Ended, repository } from "./support/executable.ts";
import { installsOnNodes } from "./support/installs-on-nodes.ts";
import { startTestCloud } from "./support/test-cloud.ts";
import type { TestCloud } from "./support/test-cloud.ts";

const packages =
  "nftables munge python3 slurm-client slurmctld slurmd etcd-server etcd-client".split(" ");
const limitMs = 300_000;

const state: { cloud?: TestCloud } = {};
const cloud = (): TestCloud => state.cloud!;

beforeAll(async () => {
  const image =
    await Bun.$`${join(repository, "test/machine-image/with-packages")} examples ${packages}`
      .quiet()
      .text();
  state.cloud = await startTestCloud("container", image.trim());
}, limitMs);

afterAll(async () => {
  await state.cloud?.[Symbol.asyncDispose]();
});

const creations = new Map<string, Promise<Ended>>();

/** Creates the cluster of an example, once for all tests. */
async function created(name: string): Promise<Ended> {
  const words = ["create", "--wait", "--timeout", "4m", "-c", name, `example:${name}`];
  const creation = creations.get(name) ?? cloud().run(words);
  creations.set(name, creation);
  return creation;
}

test.each([
  ["slurm", "./slurm-test", []],
  ["etcd", "./etcd-test", ["3 of 3 members answer, and one of them is the leader"]],
])(
  "%s is created from nothing but the program, and its test passes",
  async (name, words, shown) => {
    const { status, stdout, stderr } = await created(name);
    expect({ status, stdout }, stderr).toEqual({ status: 0, stdout: `${name}\n` });
    expect(installsOnNodes(stderr)).toEqual([]);
    const ran = await cloud().run(["run", "-c", name, words]);
    expect(ran.status, ran.stdout + ran.stderr).toBe(0);
    for (const each of shown) expect(ran.stdout).toContain(each);
  },
);

test("a partition cuts off one of etcd's members until it is healed", async () => {
  const { status, stderr } = await created("etcd");
  expect(status, stderr).toBe(0);
  const fault = (line: string) => cloud().run(["fault", ...line.split(" "), "-c", "etcd"]);
  const onNode = (node: string, line: string) =>
    cloud().run(["run", "-c", "etcd", "--node", node, line]);
  const cut = await fault("partition --between master_2 --for 10m");
  expect(cut).toMatchObject({
    status: 0,
    stderr: expect.stringContaining("0 of 4 pings answered, before: 4 of 4 pings answered"),
  });
  expect(await onNode("master_0", "./etcd-test 1")).toMatchObject({
    stdout: expect.stringContaining("2 of 3 members answer"),
  });
  expect((await onNode("master_2", "timeout 60 ./etcd-test")).status).not.toBe(0);
  const oneWay = await fault("partition --between master_0 --and master_1 --one-way --for 10m");
  expect(oneWay).toMatchObject({
    status: 0,
    stderr: expect.stringContaining("0 of 1 ping answered"),
  });
  const healed = await fault("heal");
  expect(healed).toMatchObject({
    status: 0,
    stdout: expect.stringMatching(/^(?:[0-9a-f]{8}\n){2}$/),
  });
  expect(await cloud().run(["wait", "-c", "etcd", "--timeout", "2m"])).toMatchObject({
    status: 0,
  });
  expect(await onNode("master_0", "./etcd-test")).toMatchObject({
    status: 0,
    stdout: expect.stringContaining("3 of 3 members answer"),
  });
});
