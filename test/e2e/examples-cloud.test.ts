/** Two example platforms on the local cloud, whose machines reach no mirror: their image has the packages. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { repository } from "./support/executable.ts";
import { startTestCloud } from "./support/test-cloud.ts";
import type { TestCloud } from "./support/test-cloud.ts";

const packages = "munge python3 slurm-client slurmctld slurmd etcd-server etcd-client".split(" ");
const limitMs = 300_000;

const state: { cloud?: TestCloud } = {};
const cloud = (): TestCloud => state.cloud!;

beforeAll(async () => {
  const image = await Bun.$`${join(repository, "test/machine-image/with-packages")} examples ${packages}`
    .quiet()
    .text();
  state.cloud = await startTestCloud("container", image.trim());
}, limitMs);

afterAll(async () => {
  await state.cloud?.[Symbol.asyncDispose]();
}, 120_000);

test.each([
  ["slurm", "./slurm-test", []],
  ["etcd", "./etcd-test", ["3 of 3 members answer, and one of them is the leader"]],
])(
  "%s is created from nothing but the program, and its test passes",
  async (name, words, shown) => {
    const created = await cloud().run(["create", "--wait", "--timeout", "4m", "-c", name, `example:${name}`]);
    expect({ status: created.status, stdout: created.stdout }, created.stderr).toEqual({
      status: 0,
      stdout: `${name}\n`,
    });
    expect(created.stderr).not.toContain("installing ");
    const ran = await cloud().run(["run", "-c", name, words]);
    expect(ran.status, ran.stdout + ran.stderr).toBe(0);
    for (const each of shown) expect(ran.stdout).toContain(each);
  },
  limitMs,
);
