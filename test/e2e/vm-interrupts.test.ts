/** Creations of virtual machines that end early: Ctrl-C, kill -9, a machine that ends, a second create. */
import { beforeAll, expect, test } from "bun:test";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { bootableDisk, disappointingDisk } from "../support/bootable-disk.ts";
import { destroyRemains, endAt, interruptAt } from "./support/ended-early.ts";
import { shareBackend } from "./support/shared-backend.ts";
import { startTestVms } from "./support/test-vms.ts";

const { backend: vms, artifact } = shareBackend(startTestVms);
const state: { image?: string } = {};

beforeAll(async () => {
  // No system boots from it: these tests are over long before any would have.
  state.image = join(vms().folder, "empty.img");
  await Bun.write(state.image, bootableDisk());
});

const createWords = (id: string) => [
  ..."create -vv --fresh-boot --variant oss --public-agents 0 --memory 256 --cpus 1 --disk-size 1g --image".split(
    " ",
  ),
  state.image!,
  "-c",
  id,
  artifact(),
];

const machineFiles = async (id: string) =>
  (await vms().files(id)).filter((name) => /machines|cluster\.json/.test(name));

const temporaryFolders = async () =>
  (await readdir(vms().folder)).filter((name) => name.startsWith("cluster-e2e-")).toSorted();

/** What the program says when it has come so far. */
const stages = [
  { when: "while it looks around", said: "qemu-system-x86_64 --version" },
  { when: "while the first disk is made", said: "qemu-img create" },
  { when: "while the first machine is started", said: "-daemonize" },
  { when: "while nodes boot", said: "agent_0: Boot …" },
] as const;

test.each(stages)("Ctrl-C $when leaves no machine and no disk", async ({ said }) => {
  const id = vms().id("interrupted");
  await interruptAt(vms(), said, createWords(id));
  expect((await vms().machines(id)).size).toBe(0);
  expect(await machineFiles(id)).toEqual([]);
});

test.each(stages)("after kill -9 $when, doctor and destroy know the remains", async ({ said }) => {
  const id = vms().id("killed");
  const before = await temporaryFolders();
  await endAt(vms(), { said, signal: "SIGKILL" }, createWords(id));
  if ((await machineFiles(id)).length > 0) {
    await destroyRemains(vms(), id);
    expect(await temporaryFolders()).toEqual(before);
  }
  // Whatever was only beginning has seen by now that its disk is gone.
  await Bun.sleep(1_000);
  expect((await vms().machines(id)).size).toBe(0);
  expect(await machineFiles(id)).toEqual([]);
});

test("after kill -9 the same create removes what the dead one left, and goes on", async () => {
  const id = vms().id("again");
  await endAt(vms(), { said: "agent_0: Boot …", signal: "SIGKILL" }, createWords(id));
  const before = [...(await vms().machines(id)).values()];
  expect(before).toHaveLength(3);
  const second = vms().start(createWords(id));
  await second.said("agent_0: Boot …");
  const now = [...(await vms().machines(id)).values()];
  expect(now).toHaveLength(3);
  expect(now.filter((pid) => before.includes(pid))).toEqual([]);
  second.interrupt("SIGINT");
  await second.ended;
  expect((await vms().machines(id)).size).toBe(0);
});

test("a machine that ends while it boots fails the creation at once, with what it wrote", async () => {
  const id = vms().id("ending");
  const creating = vms().start(createWords(id));
  await creating.said("agent_0: Boot …");
  // One whose QEMU has not gone to the background yet could not be started, which is another failure.
  await creating.said("Start virtual machines: done");
  process.kill((await vms().machines(id)).get("agent_0")!, "SIGKILL");
  const ended = await creating.ended;
  expect(ended.status).toBe(1);
  expect(ended.stderr).toContain("[machine-failed]");
  expect(ended.stderr).toMatch(
    /agent_0 \(vm-[0-9a-f]{8}-1\) stopped before it could be used: its QEMU was killed/,
  );
  expect((await vms().machines(id)).size).toBe(0);
});

test("of two creates with one id one goes on, and the other one leaves it alone", async () => {
  const id = vms().id("twins");
  const both = [vms().start(createWords(id)), vms().start(createWords(id))];
  const loser = await Promise.race(both.map(async (each) => ({ each, ended: await each.ended })));
  expect(loser.ended.status).toBe(1);
  expect(loser.ended.stderr).toContain("[cluster-exists]");
  const winner = both.find((each) => each !== loser.each)!;
  await winner.said("agent_0: Boot …");
  expect((await vms().machines(id)).size).toBe(3);
  winner.interrupt("SIGINT");
  await winner.ended;
  expect((await vms().machines(id)).size).toBe(0);
});

test.each(stages.slice(1))(
  "a destroy $when ends the creation, and nothing of it is left",
  async ({ said }) => {
    const id = vms().id("destroyed");
    const creating = vms().start([...createWords(id), "--agents", "5"]);
    await creating.said(said);
    expect(await vms().run(["destroy", "-c", id])).toMatchObject({ status: 0, stdout: `${id}\n` });
    const ended = await creating.ended;
    expect(ended.status).toBe(1);
    expect(ended.stderr).toContain("[machine-failed]");
    expect((await vms().machines(id)).size).toBe(0);
    expect(await machineFiles(id)).toEqual([]);
  },
);

test("an image that does not exist, and a size that is none, are refused", async () => {
  const without = await vms().run([
    "create",
    "--variant",
    "oss",
    "--image",
    "/no/such.img",
    artifact(),
  ]);
  expect(without.status).toBe(2);
  expect(without.stderr).toContain("/no/such.img does not exist");
  const tooSmall = await vms().run(["create", "--variant", "oss", "--memory", "64", artifact()]);
  expect(tooSmall.status).toBe(2);
  expect(tooSmall.stderr).toContain("at least 256 MB");
});

test.each([
  [["--fresh-boot"], "master_0"],
  [[], "A machine of this image"],
] as const)(
  "an image that the firmware can't boot ends create at once, and leaves nothing: %j",
  async (options, message) => {
    const id = vms().id("unbootable");
    const image = join(vms().folder, "disappointing.img");
    await Bun.write(image, disappointingDisk());
    const words = createWords(id).map((word) => (word === state.image ? image : word));
    const ended = await vms().run([
      "create",
      ...options,
      ...words.slice(1).filter((word) => word !== "--fresh-boot"),
    ]);
    expect(ended.status).toBe(1);
    expect(ended.stderr.replaceAll(/\s+/g, " ")).toMatch(message);
    expect(await machineFiles(id)).toEqual([]);
  },
);
