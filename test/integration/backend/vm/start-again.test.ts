import { expect, test } from "bun:test";
import { access, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { bootableDisk } from "../../../support/bootable-disk.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { shellOf, startCreation } from "./created-machines.ts";

const isThere = async (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );

test("the sockets of the private network stay, so that a machine can be started again", async () => {
  await using started = await startCreation("none");
  const { creation } = started;
  const sockets = await started.sockets();
  const [first, second] = (await creation.look()).nodes;
  await creation.firstLogin.finishBoot(first!, shellOf(), neverAborted);
  expect(await isThere(join(sockets, "socket-1"))).toBe(true);
  await creation.firstLogin.finishBoot(second!, shellOf(), neverAborted);
  expect(await isThere(join(sockets, "socket-1"))).toBe(true);
});

test("without the process that connects them, machines start again together, or not at all", async () => {
  await using started = await startCreation("none");
  const { creation, power } = started;
  const { nodes } = await creation.look();
  const cluster = await creation.describe();
  const states = async () => (await creation.describe()).nodes.map(({ state }) => state);
  const earlier = await started.sockets();
  await power.cutPower(cluster, nodes.slice(0, 1), neverAborted);
  expect(await states()).toEqual(["stopped", "running"]);
  expect(await failureOf(power.start(cluster, nodes, neverAborted))).toMatchObject({
    id: "engine-failed",
    hint: expect.stringContaining("Restart the whole cluster"),
  });
  await power.start(cluster, nodes.slice(1), neverAborted);
  expect([await states(), await started.sockets()]).toEqual([["stopped", "running"], earlier]);
  await power.cutPower(cluster, nodes, neverAborted);
  await power.start(cluster, nodes, neverAborted);
  expect(await states()).toEqual(["running", "running"]);
  expect([await isThere(earlier), await isThere(await started.sockets())]).toEqual([false, true]);
});

// Whoever may write to the folder of the image could make every later command wait.
test("machines don't start again on a pipe in place of their image, and don't wait for it", async () => {
  await using started = await startCreation("none", { agents: 0 });
  const { creation, power, image: path } = started;
  const cluster = await creation.describe();
  await power.cutPower(cluster, cluster.nodes, neverAborted);
  await rm(path);
  await Bun.$`mkfifo ${path}`;
  const signal = AbortSignal.timeout(20_000);
  expect(await failureOf(power.start(cluster, cluster.nodes, signal))).toMatchObject({
    id: "image-not-found",
    message: expect.stringContaining("was replaced or changed since the machines were created"),
  });
});

test("machines don't start again on an image that was replaced or is gone, but on one that was only touched", async () => {
  await using started = await startCreation("none", { agents: 0 });
  const { creation, power, image: path } = started;
  const cluster = await creation.describe();
  await power.cutPower(cluster, cluster.nodes, neverAborted);
  const start = async (): Promise<void> => power.start(cluster, cluster.nodes, neverAborted);
  const newer = bootableDisk();
  newer.set([1], 4096);
  await writeFile(path, newer);
  expect(await failureOf(start())).toMatchObject({
    id: "image-not-found",
    message: expect.stringContaining("was replaced or changed since the machines were created"),
    hint: expect.stringContaining(
      new Bun.CryptoHasher("sha256").update(bootableDisk()).digest("hex"),
    ),
  });
  await rm(path);
  expect((await failureOf(start())).message).toContain("is gone since the machines were created");
  await writeFile(path, bootableDisk());
  await start();
  expect((await creation.describe()).nodes.map(({ state }) => state)).toEqual(["running"]);
});

test("a single machine that starts again leaves no folder behind", async () => {
  await using started = await startCreation("none", { agents: 0 });
  const { creation, power } = started;
  const cluster = await creation.describe();
  const earlier = await started.sockets();
  await power.cutPower(cluster, cluster.nodes, neverAborted);
  await power.start(cluster, cluster.nodes, neverAborted);
  expect([await isThere(earlier), await isThere(await started.sockets())]).toEqual([false, true]);
});
