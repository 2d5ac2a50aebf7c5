/** How machines are started, and restarted if their accelerator fails, with scripts in place of QEMU. */
import { expect, test } from "bun:test";
import { access, chmod, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { architectureOf } from "../../../../src/backend/vm/qemu/architecture.ts";
import { openQemu } from "../../../../src/backend/vm/qemu/qemu.ts";
import { vmPower } from "../../../../src/backend/vm/vm-power.ts";
import { VmCreation } from "../../../../src/backend/vm/vm-creation.ts";
import { readCluster } from "../../../../src/backend/vm/cluster-facts.ts";
import {
  readBrokenAccelerator,
  rememberBrokenAccelerator,
} from "../../../../src/backend/vm/qemu/broken-accelerator.ts";
import type { Accelerator } from "../../../../src/backend/vm/options.ts";
import { ClusterError } from "../../../../src/errors.ts";
import { unmarked } from "../../../../src/outside-text.ts";
import { silentProgress, systemClock } from "../../../../src/system/runtime.ts";
import { bootableDisk } from "../../../support/bootable-disk.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import { neverAborted } from "../../../support/never-aborted.ts";

const clean = { status: 0, stdout: "", stderr: "" };
const loginFailed = new ClusterError("machine-failed", "Cannot log in to master_0.");

/** A machine is a process that sleeps; under `crashes`, it ends at once. The network's process creates the sockets and ends. */
const system = (crashes: string): string => `
pid=
sockets=
after=
for word; do
  [ "$after" != -pidfile ] || pid=$word
  case $word in *addr.path=*) sockets="$sockets \${word##*addr.path=}" ;; esac
  after=$word
done
case "$*" in *'-machine none'*) for socket in $sockets; do : >"$socket"; done; exit ;; esac
case "$*" in *'-accel ${crashes} '*)
  echo 'KVM internal error. Suberror: 1' >qemu.txt
  echo 4194305 >"$pid"
  exit ;;
esac
exec 9>>"$pid"
flock 9
sh -c 'trap "rm -f $0; exit" TERM; while :; do sleep 0.1; done' "$pid" >/dev/null 2>&1 </dev/null &
echo $! >"$pid"
`;

const image = `
case $1 in
  info) echo '{"format": "raw", "virtual-size": 1048576}' ;;
  create) for word; do path=$disk; disk=$word; done; : >"$path" ;;
esac
`;

interface Given {
  readonly forced?: Accelerator;
  readonly agents?: number;
  /** The size of each node's disk; the image has 1 MB. */
  readonly diskMegabytes?: number;
  /** Whether the user has given the image. */
  readonly hasOwnImage?: boolean;
}

/** Plans two machines under kvm, or the accelerator that is forced, for a QEMU that is this script. */
async function openCreation(
  script: string,
  { forced, agents = 1, diskMegabytes = 1024, hasOwnImage = false }: Given = {},
) {
  const folder = await scratchFolder();
  for (const [name, lines] of [
    ["qemu-system-x86_64", script],
    ["qemu-img", image],
  ] as const) {
    await writeFile(join(folder.path, name), `#!/bin/sh\n${lines}`);
    await chmod(join(folder.path, name), 0o755);
  }
  const notes: string[] = [];
  const details: string[] = [];
  const runtime = {
    environment: {
      PATH: `${folder.path}:/bin:/usr/bin`,
      XDG_CACHE_HOME: join(folder.path, "cache"),
    },
    clock: systemClock,
    progress: {
      ...silentProgress,
      note: (text: string) => void notes.push(unmarked(text)),
      detail: (level: number, text: string) => void details.push(`-${"v".repeat(level)}: ${text}`),
    },
  };
  const root = join(folder.path, "vm");
  const directory = join(root, "one-0123456789abcdef");
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const path = join(folder.path, "image.raw");
  await writeFile(path, bootableDisk());
  const plan = {
    qemu: openQemu(runtime, architectureOf("x64")),
    root,
    request: {
      clusterId: "one",
      variant: "oss",
      distribution: "debian-12",
      counts: { master: 1, agent: agents, public_agent: 0 },
      options: {
        memoryMegabytes: 256,
        cpus: 1,
        diskMegabytes,
        ...(hasOwnImage && { image: { source: path } }),
      },
      needsCgroups1: false,
      needsApt: false,
      imagePreparation: undefined,
      openPorts: [],
      webUi: undefined,
    },
    resolved: {
      qemuVersion: "8.2",
      accelerator: forced ?? "kvm",
      choice: { forced, broken: undefined },
      isSandboxed: false,
      firmware: undefined,
      image: { name: "image", path },
    },
  } as const;
  const creation = new VmCreation(plan, runtime);
  return {
    creation,
    power: vmPower(plan.qemu, runtime),
    image: path,
    notes,
    details,
    directory,
    environment: runtime.environment,
    /** Claims the same cluster id for another creation, from an image that must have this sum. */
    claimFor: async (id: string, sha256?: string) => {
      const own = join(root, `one-${id}`);
      await mkdir(own);
      const sum = { algorithm: "sha256", hex: sha256 ?? "" } as const;
      const resolved = {
        ...plan.resolved,
        image: { ...plan.resolved.image, ...(sha256 !== undefined && { sum }) },
      };
      await new VmCreation({ ...plan, resolved }, runtime).claim(
        { creationId: id, directory: own },
        neverAborted,
      );
    },
    claim: async () => creation.claim({ creationId: "0123456789abcdef", directory }, neverAborted),
    launch: async () => creation.launch("ssh-ed25519 AAAA", neverAborted),
    /** The folder of the sockets that connect the machines. */
    sockets: async () => readFile(join(directory, "machines", "network", "sockets"), "utf8"),
    [Symbol.asyncDispose]: async () => {
      await creation.stop(neverAborted);
      await creation.remove(neverAborted);
      await folder[Symbol.asyncDispose]();
    },
  };
}

/** Two machines under kvm. They crash under the accelerator `crashes`. */
async function startCreation(crashes: string, given: Given = {}) {
  const opened = await openCreation(system(crashes), given);
  await opened.claim();
  await opened.launch();
  return opened;
}

const isThere = async (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );

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
  await creation.firstLogin.finishBoot(first!, { run: async () => clean }, neverAborted);
  const { hint } = await failureOf(creation.recover(loginFailed, neverAborted));
  expect(hint).toContain("it will use tcg");
});

test("what cloud-init complains about is shown with -v, and the machine counts as booted", async () => {
  await using started = await startCreation("none");
  const { creation, details } = started;
  const complaint = { status: 3, stdout: "status: error\nno such locale\n", stderr: "" };
  const [first] = (await creation.look()).nodes;
  await creation.firstLogin.finishBoot(first!, { run: async () => complaint }, neverAborted);
  expect(unmarked(details.at(-1)!)).toBe(
    "-v: master_0: cloud-init reported:\nstatus: error\nno such locale",
  );
});

test.each([
  ["kvm", 600_000, []],
  ["tcg", 2_400_000, ["The machines run under tcg, so booting takes minutes: it was requested."]],
] as const)(
  "the first boot under %s has a limit of %d ms, and only a slow one is announced",
  async (forced, limitMs, notes) => {
    await using started = await startCreation("none", { forced, agents: 0 });
    const asked: object[] = [];
    const run = async (command: { readonly argv: readonly string[] }) =>
      Promise.resolve((asked.push(command), clean));
    const [first] = (await started.creation.look()).nodes;
    const shown = started.details.length;
    await started.creation.firstLogin.finishBoot(first!, { run }, neverAborted);
    // Machines on this computer have no deadline of their own.
    expect(asked).toMatchObject([
      { limitMs, argv: ["sh", "-c", expect.anything(), "e2e-first-boot", "", "/run/cloud-init"] },
    ]);
    expect(started.notes as readonly string[]).toEqual(notes);
    expect(started.details.slice(shown)).toEqual([]);
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
    await started.creation.firstLogin.finishBoot(first!, { run: async () => clean }, neverAborted);
    expect((await readBrokenAccelerator(started.environment))?.reason).toBe(reason);
  },
);

test("an id is given to one of two creations at once, and later ones don't even look for their image", async () => {
  await using opened = await openCreation(system("none"));
  const claims = await Promise.allSettled(["1", "2"].map((id) => opened.claimFor(id.repeat(16))));
  expect(claims.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
  expect((await failureOf(opened.claimFor("3".repeat(16), "another"))).id).toBe("cluster-exists");
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
    "Unknown driver 'vvfat'",
    "machine-not-set-up",
    "This QEMU was built without vvfat, which gives machines their keys.",
  ],
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

test("the sockets of the private network stay, so that a machine can be started again", async () => {
  await using started = await startCreation("none");
  const { creation } = started;
  const sockets = await started.sockets();
  const shell = { run: async () => ({ status: 0, stdout: "", stderr: "" }) };
  const [first, second] = (await creation.look()).nodes;
  await creation.firstLogin.finishBoot(first!, shell, neverAborted);
  expect(await isThere(join(sockets, "socket-1"))).toBe(true);
  await creation.firstLogin.finishBoot(second!, shell, neverAborted);
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
