import { expect, test } from "bun:test";
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { readCluster } from "../../../../src/backend/vm/cluster-facts.ts";
import {
  readBrokenAccelerator,
  rememberBrokenAccelerator,
} from "../../../../src/backend/vm/qemu/broken-accelerator.ts";
import { ClusterError } from "../../../../src/errors.ts";
import { unmarked } from "../../../../src/outside-text.ts";
import { bootableDisk } from "../../../support/bootable-disk.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { system, openCreation, shellOf, startCreation } from "./created-machines.ts";

const loginFailed = new ClusterError("machine-failed", "Cannot log in to master_0.");

test("machines that crash under kvm are restarted under tcg, once", async () => {
  await using started = await startCreation("kvm");
  const { creation, notes } = started;
  expect((await failureOf(creation.look())).id).toBe("machine-failed");
  const usualLimitMs = creation.firstLogin.limitMs;
  expect(await creation.recover(loginFailed, neverAborted)).toBe(true);
  expect(creation.firstLogin.limitMs).toBeGreaterThan(usualLimitMs);
  expect(notes).toEqual([
    expect.stringContaining("kvm cannot run these machines (KVM internal error. Suberror: 1)"),
  ]);
  await creation.launch("ssh-ed25519 AAAA", neverAborted);
  expect((await creation.look()).nodes.map(({ state }) => state)).toEqual(["running", "running"]);
  expect(await creation.recover(loginFailed, neverAborted)).toBe(false);
});

test("running machines are not restarted, whatever else failed", async () => {
  await using started = await startCreation("none");
  expect(await started.creation.recover(loginFailed, neverAborted)).toBe(false);
  expect(started.notes).toEqual([]);
});

test("if the user chose kvm, a crash under it is an error with a remedy", async () => {
  await using started = await startCreation("kvm", { forced: "kvm" });
  const { hint } = await failureOf(started.creation.recover(loginFailed, neverAborted));
  expect(hint).toContain("`accelerator tcg`");
});

test("once a machine has booted, none is started again: the error says to create the cluster again", async () => {
  await using started = await startCreation("kvm");
  const { creation } = started;
  const [first] = (await creation.describe()).nodes;
  await creation.firstLogin.finishBoot(first!, shellOf(), neverAborted);
  const { hint } = await failureOf(creation.recover(loginFailed, neverAborted));
  expect(hint).toContain("it will use tcg");
});

test("what cloud-init complains about is shown with -v, and the machine counts as booted", async () => {
  await using started = await startCreation("none");
  const { creation, details } = started;
  const complaint = { status: 3, stdout: "status: error\nno such locale\n", stderr: "" };
  const [first] = (await creation.look()).nodes;
  await creation.firstLogin.finishBoot(first!, shellOf(complaint), neverAborted);
  expect(unmarked(details.at(-1)!)).toBe(
    "-v: master_0: cloud-init reported:\nstatus: error\nno such locale",
  );
});

test.each([
  ["kvm", 600_000, []],
  ["tcg", 2_400_000, ["The machines run under tcg, so booting takes minutes: it was requested."]],
] as const)(
  "a machine under %s may be silent for %d ms before its first login, and only a slow one is announced",
  async (forced, limitMs, notes) => {
    await using started = await startCreation("none", { forced, agents: 0 });
    const asked: object[] = [];
    const shell = shellOf(undefined, (command) => asked.push(command));
    const [first] = (await started.creation.look()).nodes;
    const shown = started.details.length;
    await started.creation.firstLogin.finishBoot(first!, shell, neverAborted);
    expect(started.creation.firstLogin.limitMs).toBe(limitMs);
    // Machines on this computer have no deadline of their own.
    expect(asked).toMatchObject([
      { argv: ["sh", "-c", expect.anything(), "e2e-first-boot", "", "/run/cloud-init"] },
    ]);
    expect(started.notes as readonly string[]).toEqual(notes);
    expect(started.details.slice(shown)).toEqual([
      expect.stringContaining("The clock of master_0 differs by "),
    ]);
  },
);

test.each([
  ["kvm", undefined],
  ["tcg", "emulation failure"],
  [undefined, "emulation failure"],
] as const)(
  "once machines have booted with %p forced, kvm counts as broken: %p",
  async (forced, reason) => {
    await using started = await startCreation("none", {
      ...(forced !== undefined && { forced }),
      agents: 0,
    });
    await rememberBrokenAccelerator(started.environment, {
      accelerator: "kvm",
      reason: "emulation failure",
    });
    const [first] = (await started.creation.look()).nodes;
    await started.creation.firstLogin.finishBoot(first!, shellOf(), neverAborted);
    expect((await readBrokenAccelerator(started.environment))?.reason).toBe(reason);
  },
);

test("an id is given to one of two creations at once, and later ones don't even look for their image", async () => {
  await using opened = await openCreation(system("none"));
  const claims = await Promise.allSettled(["1", "2"].map((id) => opened.claimFor(id.repeat(16))));
  expect(claims.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
  expect((await failureOf(opened.claimFor("3".repeat(16), "another"))).id).toBe("cluster-exists");
});

test("an image with a checksum that has become a pipe is refused, and nobody waits for it", async () => {
  await using opened = await openCreation(system("none"));
  await rm(opened.image);
  await Bun.$`mkfifo ${opened.image}`;
  expect(await failureOf(opened.claimFor("1".repeat(16), "0".repeat(64)))).toMatchObject({
    id: "image-not-found",
    message: expect.stringContaining("it is not a regular file"),
  });
});

test("nodes whose disks are smaller than the image are refused before anything is made", async () => {
  await using opened = await openCreation(system("none"), { diskMegabytes: 0 });
  expect(await failureOf(opened.claim())).toMatchObject({
    id: "bad-usage",
    message: expect.stringContaining("of 1 MB"),
  });
  expect(await readdir(opened.directory)).toEqual([]);
});

test("nodes that have no room on the disk are refused before anything is made", async () => {
  await using opened = await openCreation(system("none"), { agents: 99_999 });
  expect(await failureOf(opened.claim())).toMatchObject({
    id: "capacity-lacking",
    message: expect.stringContaining("but 100000.0 GB are required"),
  });
  expect(await readdir(opened.directory)).toEqual([]);
});

test.each([
  [false, "debian-12"],
  [true, "own image"],
])(
  "what is needed later is recorded: with the user's own image: %p",
  async (hasOwnImage, distribution) => {
    await using started = await startCreation("none", { hasOwnImage });
    const { facts } = (await readCluster(started.directory))!;
    const machines = { accelerator: "kvm", isSandboxed: false, memoryMegabytes: 256, cpus: 1 };
    expect(facts).toMatchObject({ clusterId: "one", distribution, machines });
    const ports = facts.nodes.flatMap((node) => Object.values(node.ports));
    expect(new Set(ports).size).toBe(6);
    expect(
      await readFile(join(started.directory, "machines/master_0/seed/user-data"), "utf8"),
    ).toContain("linger");
  },
);

test.each([
  [true, []],
  [false, ["info"]],
])(
  "an image at which the plan has looked isn't read again: the user's own: %p",
  async (hasOwnImage, asked) => {
    await using opened = await openCreation(system("none"), { hasOwnImage });
    await opened.claim();
    expect(await opened.asked()).toEqual(asked);
  },
);

// Who may write to the image's folder could put a disk there that refers to any file of this user.
test.each([true, false])(
  "an image that is replaced after it was checked is refused: the user's own: %p",
  async (hasOwnImage) => {
    await using opened = await openCreation(system("none"), { hasOwnImage });
    await opened.claim();
    await writeFile(`${opened.image}.other`, bootableDisk());
    await rename(`${opened.image}.other`, opened.image);
    expect(await failureOf(opened.launch())).toMatchObject({
      id: "image-not-found",
      message: `Nodes cannot be created from ${opened.image}: it was replaced or changed after it had been checked.`,
    });
    expect(await opened.asked()).not.toContain("create");
  },
);

test("an image that is replaced while QEMU starts is refused, and nothing is tried again", async () => {
  const swap = `image=\${0%/*}/image.raw
[ -e "$image.aside" ] || { mv "$image" "$image.aside" && cp "$image.aside" "$image"; }
`;
  await using opened = await openCreation(`${swap}${system("none")}`, { hasOwnImage: true });
  await opened.claim();
  const failure = await failureOf(opened.launch());
  expect(failure).toMatchObject({ id: "image-not-found" });
  expect(await opened.creation.recover(failure, neverAborted)).toBe(false);
});

test("before the id is claimed, nothing can be left; after that, the command that removes it is known", async () => {
  await using opened = await openCreation(system("none"));
  expect(opened.creation.remains()).toBeUndefined();
  await opened.claim();
  expect(opened.creation.remains()?.left).toBe(
    "Running virtual machines may be left. Remove them with: cluster-vm destroy --cluster-id one",
  );
});

test.each([
  [
    "disk.qcow2: Disk quota exceeded",
    "capacity-lacking",
    "The disk is full: disk.qcow2: Disk quota exceeded.",
  ],
  [
    "Could not open 'disk.qcow2'",
    "engine-failed",
    /^qemu-system-x86_64 for (?:master|agent)_0 failed: Could not open/,
  ],
])("a QEMU that says %j is an error with the cause", async (said, id, message) => {
  const failing = `case "$*" in *'-accel '*) echo "qemu-system-x86_64: ${said}" >&2; exit 1 ;; esac\n`;
  await using opened = await openCreation(`${failing}${system("none")}`);
  await opened.claim();
  expect(await failureOf(opened.launch())).toMatchObject({
    id,
    message: typeof message === "string" ? message : expect.stringMatching(message),
  });
});

test("a launch that can't record the folder of its sockets leaves none behind", async () => {
  await using opened = await openCreation(system("none"));
  await using temporary = await scratchFolder();
  await opened.claim();
  await mkdir(join(opened.directory, "machines"));
  await writeFile(join(opened.directory, "machines", "network"), "");
  const usual = process.env["TMPDIR"];
  try {
    process.env["TMPDIR"] = temporary.path;
    expect((await failureOf(opened.launch())).message).toContain("EEXIST");
    expect(await readdir(temporary.path)).toEqual([]);
  } finally {
    if (usual === undefined) delete process.env["TMPDIR"];
    else process.env["TMPDIR"] = usual;
  }
});
