import { mkdir, open, readdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ClusterError, messageOf } from "../../../errors.ts";
import { assertFreeSpace } from "../../../system/files/private-file.ts";
import { poll } from "../../../system/retry.ts";
import type { Clock } from "../../../system/runtime.ts";
import { outsideLine } from "../../../system/printable.ts";
import { waits } from "../../../system/waits.ts";
import { createDisk } from "../images/image-store.ts";
import { consoleProgress, readConsole } from "../machines/console-sink.ts";
import { assertBoots } from "../machines/boot-problem.ts";
import { usesIpv6 } from "../machines/host-ipv6.ts";
import { startFailure, startMachine } from "../machines/launch.ts";
import { writeSeed } from "../machines/machine-arguments.ts";
import { machineLife } from "../machines/machine-life.ts";
import {
  type MachineFiles,
  endMachines,
  filesIn,
  machinesFolder,
} from "../machines/machine-process.ts";
import { createFlash } from "../qemu/firmware.ts";
import { runOnMonitor } from "../qemu/monitor.ts";
import type { Qemu } from "../qemu/qemu.ts";
import { sshUser } from "../records.ts";
import { saveState } from "../snapshots/machine-state.ts";
import { askAgent, installAgent } from "./agent.ts";
import {
  type Template,
  type TemplateKind,
  draftFolder,
  templateFiles,
  writeTemplate,
} from "./template-files.ts";
import type { MachineKind } from "./machine-kind.ts";

/** The template's own names. No node has them, so they are found in files and replaced. */
export const templateNames = {
  instance: "cluster-e2e-template-instance",
  hostname: "cluster-e2e-template",
  /** Higher than that of any node. */
  place: 65_000,
} as const;

const diskBytes = 1e9;
const consoleBytes = 1024 * 1024;

export interface Making extends MachineKind {
  readonly name: string;
  readonly kind: TemplateKind;
  readonly store: string;
  /** The folder of the creation that makes the template: whatever removes the creation also ends the machine. */
  readonly directory: string;
  readonly isSandboxed: boolean;
  /** After this time without anything new on its console, the machine isn't booting any more. */
  readonly limitMs: number;
  readonly clock: Clock;
}

/** Boots a machine of this kind and saves it, for a caller that holds the template's lock. A failure leaves nothing. */
export async function makeTemplate(
  qemu: Qemu,
  making: Making,
  signal: AbortSignal,
): Promise<Template> {
  const { store, name, kind, directory, clock } = making;
  const draft = draftFolder(store, name);
  const saved = templateFiles(draft);
  const own = filesIn(join(machinesFolder(directory), "template"));
  const machine: MachineFiles = { ...own, disk: saved.disk, flash: saved.flash };
  try {
    // QEMU would end without a message if it couldn't write to the memory's file.
    await assertFreeSpace(store, making.options.memoryMegabytes * 1024 ** 2 + diskBytes);
    await mkdir(draft, { mode: 0o700 });
    await boot(qemu, { making, machine, memory: saved.memory }, signal);
    await runOnMonitor(machine.folder, [{ execute: "stop" }], signal);
    await saveState({ machine: machine.folder, path: saved.state, clock }, signal);
    await endMachines([machine], clock, signal);
    await writeFile(
      saved.console,
      await readConsole(machine.folder, consoleBytes).catch(() => ""),
      { mode: 0o600 },
    );
    await sync(draft);
    await writeTemplate(draft, { kind, createdAt: new Date(clock.now()).toISOString() });
    await rename(draft, join(store, name));
    return { name, folder: join(store, name) };
  } finally {
    await endMachines([machine], clock, new AbortController().signal);
    for (const folder of [machine.folder, draft])
      await rm(folder, { recursive: true, force: true });
  }
}

interface Booting {
  readonly making: Making;
  readonly machine: MachineFiles;
  readonly memory: string;
}

/** Resolves when the machine has booted, and nobody can log in to it. */
async function boot(
  qemu: Qemu,
  { making, machine, memory }: Booting,
  signal: AbortSignal,
): Promise<void> {
  const { options, accelerator, isSandboxed, firmware, image, limitMs, clock } = making;
  await mkdir(machine.folder, { recursive: true, mode: 0o700 });
  const { instance, hostname, place } = templateNames;
  await writeSeed(machine.seed, {
    instanceId: instance,
    hostname,
    place,
    boot: {
      user: sshUser,
      publicKey: undefined,
      hostKey: undefined,
      deadline: undefined,
      hosts: [],
      lingers: true,
      scripts: [installAgent],
    },
  });
  if (firmware !== undefined) await createFlash(qemu, firmware, machine, signal);
  await createDisk(qemu, { path: machine.disk, image, megabytes: options.diskMegabytes }, signal);
  signal.throwIfAborted();
  const end = await startMachine(qemu, {
    architecture: qemu.architecture,
    accelerator,
    isSandboxed,
    // Machines that are offline are made from the same template: QEMU's network decides what they
    // reach, not the machine.
    options,
    files: machine,
    node: { id: hostname, ports: { ssh: 0, http: 0, https: 0 } },
    place,
    sockets: { folder: "", count: 1 },
    hasIpv6: await usesIpv6(),
    memory: { path: memory, isShared: true, continues: false },
    isOfTemplate: true,
  });
  if (end.status !== 0) throw startFailure(qemu, "a template", end);
  await writeFile(machine.started, "");
  await untilReady(qemu, { machine, limitMs, clock }, signal);
}

async function untilReady(
  { architecture }: Qemu,
  { machine, limitMs, clock }: Pick<Booting, "machine"> & Pick<Making, "limitMs" | "clock">,
  signal: AbortSignal,
): Promise<void> {
  const over = new AbortController();
  const inner = AbortSignal.any([signal, over.signal]);
  const printed = { progress: "" };
  const look = async (): Promise<true | undefined> => {
    printed.progress = await consoleProgress(machine.folder);
    if ((await machineLife(machine)) !== "running") return true;
    const { hostname } = templateNames;
    await assertBoots(
      { files: machine, hostname, name: "A machine of this image" },
      architecture,
      clock,
    );
    return undefined;
  };
  const failure = async (why: string): Promise<ClusterError> =>
    (await machineLife(machine)) === "killed" ? wasKilled() : notReady(why);
  const rule = { ...waits.templateBoot, clock, deadlineMs: clock.now() + limitMs };
  const seen = (): string => printed.progress;
  const ended = poll(look, { ...rule, seen }, inner).then(async (hasEnded) => {
    throw hasEnded === undefined
      ? bootStalled(limitMs, await lastLine(machine))
      : await failure("the machine ended before it had booted");
  });
  try {
    const asked = askAgent(machine.folder, undefined, inner).catch(async (error: unknown) => {
      inner.throwIfAborted();
      throw await failure(`it does not answer: ${messageOf(error)}`);
    });
    const report = await Promise.race([asked, ended]);
    if (report.is === "unsuitable")
      throw new ClusterError("machine-failed", `${report.why}.`, { facts: { suits: false } });
    if (report.is !== "ready") throw notReady("why" in report ? report.why : report.is);
  } finally {
    over.abort();
    await ended.catch(() => {});
  }
}

/** No fault of this kind of machine. */
const wasKilled = (): ClusterError =>
  new ClusterError("engine-failed", "its QEMU was killed, perhaps because memory ran out.");

const notReady = (why: string): ClusterError => new ClusterError("machine-failed", `${why}.`);

const bootStalled = (limitMs: number, line: string): ClusterError =>
  new ClusterError(
    "deadline-passed",
    `it has printed nothing new for ${limitMs / 60_000} minutes, and has not booted. Last seen: ${line || "nothing"}`,
  );

async function lastLine({ folder }: MachineFiles): Promise<string> {
  const text = await readConsole(folder, consoleBytes).catch(() => "");
  return outsideLine(text.trimEnd().split("\n").at(-1) ?? "");
}

/** Makes sure that the files survive a crash of this computer. */
async function sync(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    await using file = await open(path, "r+");
    await file.sync();
  }
}
