import { expect, test } from "bun:test";
import { mkdir, readdir, readFile, stat, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { copyMachine } from "../../../../../src/backend/vm/copies/resolve-copy.ts";
import { machineFiles } from "../../../../../src/backend/vm/machines/machine-process.ts";
import { savedFiles } from "../../../../../src/backend/vm/snapshots/snapshot-files.ts";
import { isAccessible } from "../../../../../src/system/files/private-file.ts";
import { failureOf } from "../../../../support/failure-of.ts";
import { machineNode } from "../../../../support/machine-node.ts";
import { scratchFolder } from "../../../../support/scratch-folder.ts";

const node = machineNode({ role: "public_agent", index: 2 });

/** A cluster with a snapshot, and a folder for a copy of its only machine. */
async function openCopy() {
  const folder = await scratchFolder();
  const [directory, snapshot, copied] = ["source", "snapshot", "copy"].map((name) =>
    join(folder.path, name),
  );
  const write = async (path: string, text: string): Promise<void> => {
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, text);
  };
  const saved = savedFiles(node);
  await write(join(snapshot!, saved.disk), "saved disk");
  const to = machineFiles(copied!, node);
  return {
    from: machineFiles(directory!, node),
    to,
    write,
    variables: join(snapshot!, saved.variables),
    disk: join(snapshot!, saved.disk),
    copy: async (movesDisks?: boolean) =>
      copyMachine(
        {
          directory: directory!,
          node,
          snapshot: snapshot!,
          ...(movesDisks !== undefined && { movesDisks }),
        },
        {
          directory: copied!,
          node,
          place: 0,
          hosts: [node],
          publicKey: "ssh-ed25519 AAAA",
          scripts: ["echo names"],
          deadline: new Date(1_700_000_000_000),
        },
      ),
    read: async (name: string): Promise<string> => readFile(join(to.folder, name), "utf8"),
    [Symbol.asyncDispose]: folder[Symbol.asyncDispose],
  };
}

test("a machine without firmware of its own is copied with its disk and a seed that belongs to it", async () => {
  await using opened = await openCopy();
  await opened.copy();
  expect((await readdir(opened.to.folder)).toSorted()).toEqual(["disk.qcow2", "seed"]);
  expect(await opened.read("disk.qcow2")).toBe("saved disk");
  expect(JSON.parse(await opened.read("seed/meta-data"))).toEqual({
    "instance-id": node.id,
    "local-hostname": "public-agent-2",
  });
  const userData = await opened.read("seed/user-data");
  for (const part of [
    "ssh-ed25519 AAAA",
    "linger",
    "cluster-e2e-deadline 1700000000",
    "echo names",
  ])
    expect(userData).toContain(part);
  expect(userData).not.toContain("ssh_keys");
  expect((await stat(opened.to.folder)).mode & 0o777).toBe(0o700);
});

test.each([
  [undefined, true],
  [false, true],
  [true, false],
])("a disk that is moved (%p) is left in the snapshot: %p", async (movesDisks, isLeft) => {
  await using opened = await openCopy();
  await opened.copy(movesDisks);
  expect(await opened.read("disk.qcow2")).toBe("saved disk");
  expect(await isAccessible(opened.disk)).toBe(isLeft);
});

test("a machine with firmware of its own is copied with the firmware's saved variables", async () => {
  await using opened = await openCopy();
  await opened.write(opened.from.flash.program, "program");
  await opened.write(opened.from.flash.variables, "variables of now");
  await opened.write(opened.variables, "saved variables");
  await opened.copy();
  expect([
    await opened.read("firmware.qcow2"),
    await opened.read("firmware-variables.qcow2"),
  ]).toEqual(["program", "saved variables"]);
});

test.each([
  [
    "the one that the source has, though it isn't the source's id",
    '{"instance-id": "vm-fedcba98-7"}',
    "vm-fedcba98-7",
  ],
  ["the source's id if that is malformed", '{"instance-id": "a b"}', node.id],
  ["the source's id if that is missing", "{}", node.id],
  ["the source's id if the seed is damaged", "{", node.id],
])(
  "the instance id is %s, so that cloud-init doesn't set the copy up again",
  async (_, metaData, id) => {
    await using opened = await openCopy();
    await opened.write(join(opened.from.seed, "meta-data"), metaData);
    await opened.copy();
    expect(JSON.parse(await opened.read("seed/meta-data"))).toMatchObject({ "instance-id": id });
  },
);

test.skipIf(process.platform !== "linux")(
  "a full disk is an error that names the node and the way out",
  async () => {
    await using opened = await openCopy();
    await mkdir(opened.to.seed, { recursive: true });
    await symlink("/dev/full", join(opened.to.seed, "user-data"));
    expect(await failureOf(opened.copy())).toMatchObject({
      id: "capacity-lacking",
      message: "The disk is full: public_agent_2 cannot be copied.",
      hint: "Free some space, or delete a snapshot.",
    });
  },
);

test.each(["disk.qcow2", "firmware-variables.qcow2"])(
  "a copy of %s that fails for another reason is an error, too, which isn't mistaken for a full disk",
  async (name) => {
    await using opened = await openCopy();
    await opened.write(opened.variables, "saved variables");
    await mkdir(join(opened.to.folder, name), { recursive: true });
    expect((await failureOf(opened.copy())).id).toBeUndefined();
  },
);
