/** An accelerator that passes its trial and breaks machines later. A program stands in for such a QEMU. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { chmod, mkdir, readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { bootableDisk } from "../support/bootable-disk.ts";
import { repository } from "./support/executable.ts";
import { buildVmImage, startTestVms } from "./support/test-vms.ts";
import type { TestVms } from "./support/test-vms.ts";

const state: { vms?: TestVms; empty?: string; artifact?: string } = {};
const vms = (): TestVms => state.vms!;
const qemu = "qemu-system-x86_64";
const missing = Bun.which(qemu) === null ? `no ${qemu} here` : undefined;

/** Installs nothing but a note of the node's name. */
const idle = `#!/bin/bash
# variant: oss
case $1 in
  --version) echo '{"variant": "oss", "version": "1"}' ;;
  --genconf) mkdir genconf/serve && echo 'uname -n >/installed' >genconf/serve/cluster_install.sh ;;
esac
`;

beforeAll(async () => {
  state.vms = await startTestVms();
  // Nothing boots from it.
  state.empty = join(vms().folder, "empty.img");
  await Bun.write(state.empty, bootableDisk());
  state.artifact = join(vms().folder, "idle.sh");
  await Bun.write(state.artifact, idle);
});

afterAll(async () => {
  await state.vms?.[Symbol.asyncDispose]();
});

/** A PATH whose QEMU breaks so. */
async function breaking(runState: string, milliseconds: number): Promise<string> {
  const folder = join(vms().folder, `${runState}-${milliseconds}`);
  await mkdir(folder, { recursive: true });
  const program = join(import.meta.dir, "support", "breaking-qemu-program.ts");
  const words = [process.execPath, program, runState, String(milliseconds), Bun.which(qemu)!];
  await Bun.write(
    join(folder, qemu),
    `#!/bin/sh\nexec ${words.map((word) => `'${word}'`).join(" ")} "$@"\n`,
  );
  await chmod(join(folder, qemu), 0o755);
  return `${folder}:${process.env["PATH"] ?? ""}`;
}

const createWords = (id: string, image: string, ...more: readonly string[]) => [
  ..."create -v --fresh-boot --variant oss --public-agents 0 --memory 512 --cpus 1 --disk-size 4g --image".split(
    " ",
  ),
  image,
  "-c",
  id,
  ...more,
  state.artifact!,
];

const commandLines = async (id: string) =>
  Promise.all(
    [...(await vms().machines(id)).values()].map(async (pid) =>
      readFile(`/proc/${pid}/cmdline`, "utf8"),
    ),
  );

const linesWith = (text: string, part: string) =>
  text.split("\n").filter((line) => line.includes(part));

const failures = [
  [
    "internal-error",
    "QEMU stopped it with an internal error (KVM internal error. Suberror: 1; emulation failure)",
  ],
  ["guest-panicked", "its kernel panicked"],
  ["io-error", "QEMU stopped it because of a disk error"],
  ["crash", "its QEMU crashed (KVM internal error. Suberror: 1; emulation failure)"],
] as const;

test.skipIf(missing !== undefined).each(failures)(
  `with a forced accelerator, %s fails the creation at once, with QEMU's words (${missing ?? "here"})`,
  async (runState, reason) => {
    const id = vms().id(`forced-${runState}`);
    const environment = { PATH: await breaking(runState, 3_000) };
    const creating = vms().start(createWords(id, state.empty!, "--accelerator", "kvm"), {
      environment,
    });
    await creating.said("Start virtual machines: done");
    // Without a look at the machines, this would take ten minutes and end for another reason.
    const ended = await creating.ended;
    expect(ended.status).toBe(1);
    expect(ended.stderr).toContain(reason);
    expect(ended.stderr).toContain("[machine-failed]");
    expect(ended.stderr).not.toContain("restarting them");
    if (runState === "internal-error") {
      expect(ended.stderr).toContain("Omit --accelerator, or pass --accelerator tcg.");
      const [creation] = (await readdir(vms().stateFolder)).filter((name) =>
        name.startsWith(`${id}-`),
      );
      const log = await readFile(join(vms().stateFolder, creation!, "master_0.qemu.txt"), "utf8");
      expect(log).toContain("EAX=0000001f");
    }
    expect((await vms().machines(id)).size).toBe(0);
  },
);

test.skipIf(missing !== undefined)(
  `a broken accelerator is remembered, reported by doctor, and used again once that is forgotten (${missing ?? "here"})`,
  async () => {
    const environment = { PATH: await breaking("internal-error", 60_000) };
    const plan = async () =>
      (
        await vms().run([...createWords(vms().id("plan"), state.empty!), "--dry-run"], {
          environment,
        })
      ).stdout;
    expect(await plan()).toContain("tcg; kvm has failed since this computer started");
    const { stdout } = await vms().run(["doctor"], { environment });
    expect(stdout).toContain(
      "kvm passes its test, but has broken a machine since this computer started: KVM internal error",
    );
    const path = /create --accelerator kvm, or remove (\S+)/.exec(stdout)![1]!;
    await Bun.file(path).delete();
    expect(await plan()).toMatch(/QEMU [0-9.]+, kvm\n/);
    expect((await vms().run(["doctor"], { environment })).stdout).toMatch(/✔ accelerator +kvm\n/);
  },
);

test.skipIf(missing !== undefined)(
  `machines that break are started again under tcg, and Ctrl-C then leaves nothing (${missing ?? "here"})`,
  async () => {
    const id = vms().id("again");
    const environment = { PATH: await breaking("internal-error", 1_000) };
    const creating = vms().start(createWords(id, state.empty!), { environment });
    await creating.said("restarting them under tcg");
    await creating.said(/Start virtual machines: done[^]*Start virtual machines: done/);
    const lines = await commandLines(id);
    expect(lines.filter((line) => line.includes("-accel\0tcg"))).toHaveLength(2);
    expect(lines.filter((line) => line.includes("-accel\0kvm"))).toHaveLength(0);
    expect(linesWith(creating.stderr(), "kvm cannot run these machines")).toHaveLength(1);
    creating.interrupt("SIGINT");
    expect((await creating.ended).signal).toBe("SIGINT");
    expect((await vms().machines(id)).size).toBe(0);
    expect((await vms().files(id)).filter((name) => /machines|cluster\.json/.test(name))).toEqual(
      [],
    );
  },
);

test.skipIf(missing !== undefined)(
  `the library's example succeeds although the accelerator breaks, and leaves nothing (${missing ?? "here"})`,
  async () => {
    const id = vms().id("library");
    const example = join(repository, "test", "e2e", "example", "library-vm.ts");
    const child = Bun.spawn(
      [process.execPath, example, state.artifact!, await buildVmImage(), id],
      {
        env: {
          PATH: await breaking("internal-error", 2_000),
          XDG_STATE_HOME: join(vms().folder, "state"),
          XDG_CACHE_HOME: join(vms().folder, "fresh"),
        },
        stdout: "pipe",
        stderr: "pipe",
      },
    );
    const outputs = [new Response(child.stdout).text(), new Response(child.stderr).text()] as const;
    const [status, stdout, stderr] = await Promise.all([child.exited, ...outputs]);
    expect({ status, stdout }, stderr).toEqual({ status: 0, stdout: "Installed on master-0.\n" });
    expect(linesWith(stderr, "kvm cannot run these machines")).toHaveLength(1);
    expect((await vms().machines(id)).size).toBe(0);
    expect((await vms().files(id)).filter((name) => /machines|cluster\.json/.test(name))).toEqual(
      [],
    );
  },
);
