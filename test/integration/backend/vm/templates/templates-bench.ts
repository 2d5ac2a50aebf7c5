import { chmod, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { architectureOf } from "../../../../../src/backend/vm/qemu/architecture.ts";
import { openQemu } from "../../../../../src/backend/vm/qemu/qemu.ts";
import { vmPower } from "../../../../../src/backend/vm/vm-power.ts";
import { vmTemplates } from "../../../../../src/backend/vm/templates/vm-templates.ts";
import { VmCreation } from "../../../../../src/backend/vm/vm-creation.ts";
import { unmarked } from "../../../../../src/outside-text.ts";
import { type Clock, systemClock } from "../../../../../src/system/runtime.ts";
import { silentProgress } from "../../../../support/silent-progress.ts";
import { bootableDisk } from "../../../../support/bootable-disk.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";
import { scratchFolder } from "../../../../support/scratch-folder.ts";
import type { Behaviour } from "./qemu-stand-in.ts";

const image = `
case $1 in
  info) echo '{"format": "raw", "virtual-size": 1048576}' ;;
  create) for word; do path=$disk; disk=$word; done; : >"$path" ;;
esac
`;
const usual: Behaviour = { version: "7.2.22", boot: "ready", copy: "done", saves: true };
export const key = "ssh-ed25519 AAAA own";

/** A computer with a stand-in for QEMU, on which clusters are created from templates. */
export async function openBench(clock: Clock = systemClock) {
  const folder = await scratchFolder();
  const at = (...names: readonly string[]): string => join(folder.path, ...names);
  const standIn = join(import.meta.dir, "qemu-stand-in.ts");
  for (const [name, text] of [
    ["qemu-system-x86_64", `exec '${process.execPath}' '${standIn}' '${folder.path}' "$@"`],
    ["qemu-img", image],
  ] as const) {
    await writeFile(at(name), `#!/bin/sh\n${text}\n`);
    await chmod(at(name), 0o755);
  }
  await writeFile(at("image.raw"), bootableDisk());
  const notes: string[] = [];
  const runtime = {
    environment: { PATH: `${folder.path}:/bin:/usr/bin`, XDG_CACHE_HOME: at("cache") },
    clock,
    progress: { ...silentProgress, note: (text: string) => void notes.push(unmarked(text)) },
  };
  const behave = async (more: Partial<Behaviour> = {}) =>
    writeFile(at("behaviour.json"), JSON.stringify({ ...usual, ...more }));
  await behave();
  const qemu = openQemu(runtime, architectureOf("x64"));
  const creations: VmCreation[] = [];
  const claim = async (
    id: string,
    mostMegabytes = 10_240,
    lifetimeMs?: number,
  ): Promise<VmCreation> => {
    const directory = at("vm", `${id}-0123456789abcde${creations.length}`);
    await mkdir(directory, { recursive: true, mode: 0o700 });
    const request = {
      clusterId: id,
      variant: "oss",
      distribution: "debian-12",
      counts: { master: 1, agent: 1, public_agent: 0 },
      options: { memoryMegabytes: 256, cpus: 1, diskMegabytes: 1024, templates: { mostMegabytes } },
      needsCgroups1: false,
      folderDistribution: undefined,
      imagePreparation: undefined,
      openPorts: [],
      webUi: undefined,
      lifetimeMs,
    } as const;
    const resolved = {
      qemuVersion: "7.2",
      accelerator: "tcg",
      choice: { forced: undefined, broken: undefined },
      isSandboxed: false,
      firmware: undefined,
      image: { name: "image", path: at("image.raw") },
    } as const;
    const creation = new VmCreation({ qemu, root: at("vm"), request, resolved }, runtime);
    await creation.claim(
      { creationId: `0123456789abcde${creations.length}`, directory },
      neverAborted,
    );
    creations.push(creation);
    return creation;
  };
  const templates = vmTemplates(runtime);
  const lines = async (name: string, end: string) =>
    (await readFile(at(name), "utf8").catch(() => "")).split(end).slice(0, -1);
  return {
    at,
    notes: () => notes.filter((note) => !note.includes("under tcg")),
    behave,
    power: vmPower(qemu, runtime),
    claim,
    create: async (id: string) => {
      const creation = await claim(id);
      await creation.launch(key, neverAborted);
      return creation;
    },
    templates,
    names: async () => (await templates.list(neverAborted)).map(({ name }) => name),
    /** How the machines were started: `boot` for those of a template, `copy`, or `fresh`. */
    starts: async () =>
      (await lines("started", "\n")).map((each) =>
        each.includes("share=on") ? "boot" : each.includes("share=off") ? "copy" : "fresh",
      ),
    scripts: async () => lines("scripts", "\n--end--\n"),
    [Symbol.asyncDispose]: async () => {
      for (const creation of creations) await creation.stop(neverAborted);
      for (const creation of creations) await creation.remove(neverAborted);
      await folder[Symbol.asyncDispose]();
    },
  };
}
