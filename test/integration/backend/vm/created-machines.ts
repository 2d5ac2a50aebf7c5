import { chmod, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { architectureOf } from "../../../../src/backend/vm/qemu/architecture.ts";
import { identityOf } from "../../../../src/backend/vm/images/image-verification.ts";
import { openQemu } from "../../../../src/backend/vm/qemu/qemu.ts";
import { vmPower } from "../../../../src/backend/vm/vm-power.ts";
import { createVmBackend } from "../../../../src/backend/vm/vm-backend.ts";
import { VmCreation } from "../../../../src/backend/vm/vm-creation.ts";
import type { Accelerator } from "../../../../src/backend/vm/options.ts";
import type {
  Connection,
  RemoteCommand,
  RemoteResult,
} from "../../../../src/ssh/connection/connection.ts";
import { unmarked } from "../../../../src/outside-text.ts";
import { systemClock } from "../../../../src/system/runtime.ts";
import { silentProgress } from "../../../support/silent-progress.ts";
import { bootableDisk } from "../../../support/bootable-disk.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import { neverAborted } from "../../../support/never-aborted.ts";

/** A machine is a process that sleeps; under `crashes`, it ends at once. The network's process creates the sockets and ends. */
export const system = (crashes: string): string => `
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

/** Notes what it is asked for beside the image. */
const image = `
echo "$1" >>"\${0%/*}/asked"
case $1 in
  info) echo '{"format": "raw", "virtual-size": 1048576}' ;;
  create) for word; do path=$disk; disk=$word; done; : >"$path" ;;
esac
`;

const clean: RemoteResult = { status: 0, stdout: "", stderr: "" };

/** The shell of a machine whose clock is right. It answers everything else in the same way. */
export function shellOf(
  answer: RemoteResult = clean,
  onCommand: (command: RemoteCommand) => void = () => {},
): Pick<Connection, "run"> {
  return {
    run: async (command) => {
      const { argv, stdin, onOutput } = command;
      if (!argv.includes("e2e-clock")) {
        onCommand(command);
        return answer;
      }
      for await (const _ of stdin as AsyncIterable<Uint8Array>)
        await onOutput?.("stdout", `${systemClock.now() / 1000} 0\n`);
      return clean;
    },
  };
}

interface Given {
  readonly forced?: Accelerator;
  readonly agents?: number;
  /** The size of each node's disk; the image has 1 MB. */
  readonly diskMegabytes?: number;
  /** Whether the user has given the image, at which the resolving looks. */
  readonly hasOwnImage?: boolean;
}

/** Plans two machines under kvm, or the accelerator that is forced, for a QEMU that is this script. */
export async function openCreation(
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
      XDG_STATE_HOME: folder.path,
    },
    clock: systemClock,
    progress: {
      ...silentProgress,
      note: (text: string) => void notes.push(unmarked(text)),
      detail: (level: number, text: string) => void details.push(`-${"v".repeat(level)}: ${text}`),
    },
  };
  const root = join(folder.path, "cluster-e2e", "vm");
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
      folderDistribution: undefined,
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
      ownImage: hasOwnImage
        ? { path, format: "raw" as const, sizeBytes: 1_048_576, identity: await identityOf(path) }
        : undefined,
    },
  } as const;
  const creation = new VmCreation(plan, runtime);
  return {
    creation,
    /** Another creation of the same id. */
    another: () => new VmCreation(plan, runtime),
    backend: createVmBackend(runtime),
    root,
    power: vmPower(plan.qemu, runtime),
    image: path,
    /** Its commands, in turn. */
    asked: async () =>
      (await readFile(join(folder.path, "asked"), "utf8").catch(() => "")).split("\n").slice(0, -1),
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
export async function startCreation(crashes: string, given: Given = {}) {
  const opened = await openCreation(system(crashes), given);
  await opened.claim();
  await opened.launch();
  return opened;
}
