/** `cluster-vm` with a stand-in for QEMU that boots nothing and can misbehave at each call. */
import { mkdir, readdir, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { bootableDisk } from "../../support/bootable-disk.ts";
import type { ScriptedAnswer } from "../../local-cloud/machines/scripted-answers.ts";
import type { Exhibit, Struck, Thing } from "../fault.ts";
import { processesOf } from "../processes.ts";
import { usualAnswers } from "./cloud-world.ts";
import { createWordsWith, newFolder, ProgramWorld } from "./program-world.ts";
import type { QemuFault, TemplateBehaviour } from "./qemu-calls.ts";

export class VmWorld extends ProgramWorld {
  readonly environment: Readonly<Record<string, string>>;
  readonly secrets: readonly string[];
  readonly createWords: readonly string[];

  static async open(this: void): Promise<VmWorld> {
    return VmWorld.#open("--fresh-boot ");
  }

  /** Its machines are copies of a template. */
  static async openWithTemplates(this: void): Promise<VmWorld> {
    return VmWorld.#open("");
  }

  static async #open(option: string): Promise<VmWorld> {
    const world = new VmWorld(await newFolder(), option);
    await world.writeInputs();
    await world.#writeQemu();
    return world;
  }

  private constructor(folder: string, option: string) {
    super(folder, "cluster-vm");
    this.environment = { ...this.ownEnvironment(), XDG_CACHE_HOME: join(folder, "cache") };
    this.secrets = [this.license, this.passwordHash];
    this.createWords = createWordsWith(
      `${option}--agents 0 --memory 512 --cpus 1 --disk-size 4g --accelerator tcg --image empty.img`,
    );
  }

  async answer(...answers: readonly ScriptedAnswer[]): Promise<void> {
    await Bun.write(
      join(this.folder, "qemu", "answers.json"),
      JSON.stringify([...answers, ...usualAnswers]),
    );
  }

  async makeTemplates(behaviour: Partial<TemplateBehaviour> = {}): Promise<void> {
    const usual: TemplateBehaviour = { boots: true, canSave: true };
    await Bun.write(
      join(this.folder, "qemu", "template.json"),
      JSON.stringify({ ...usual, ...behaviour }),
    );
  }

  /** The folders of all templates. One whose name begins with a dot is being made. */
  async templates(): Promise<readonly string[]> {
    const store = join(this.folder, "cache", "cluster-e2e", "templates");
    const found = await readdir(store, { withFileTypes: true }).catch(() => []);
    return found.filter((entry) => entry.isDirectory()).map(({ name }) => join(store, name));
  }

  /** All machines enter this state of QEMU's. */
  async enter(runState: string): Promise<void> {
    await Bun.write(join(this.folder, "qemu", "run-state"), runState);
  }

  async strike(...faults: readonly QemuFault[]): Promise<Struck> {
    const path = (name: string): string => join(this.folder, "qemu", name);
    await Bun.write(path("faults.json"), JSON.stringify(faults));
    return {
      hasStruck: () => faults.length === 0 || Bun.file(path("struck")).size > 0,
      [Symbol.asyncDispose]: async () => {
        await Bun.write(path("faults.json"), "[]");
        await rm(path("run-state"), { force: true });
        await this.answer();
        await this.makeTemplates();
      },
    };
  }

  /** The machines' processes: their temporary folder is this world's too. */
  machines(): readonly number[] {
    return processesOf(this.temporaryFolder)
      .filter(({ words }) => words.includes(" -pidfile ") && !words.includes("-daemonize"))
      .map(({ id }) => id);
  }

  /** Whether a machine has been told to shut down, which takes it a moment. */
  isShuttingDown(): boolean {
    return Bun.file(join(this.folder, "qemu", "struck")).size > 0;
  }

  async leftovers(keepsCluster: boolean): Promise<readonly Thing[]> {
    const machines = this.machines();
    const kept = keepsCluster ? 1 : 0;
    const inState = await readdir(this.stateFolder, { recursive: true }).catch(() => []);
    const disks = inState.filter(
      (name) => name.endsWith("disk.qcow2") && !name.includes("/snapshots/installed/"),
    );
    const drafts = [
      ...(await this.templates()).filter((path) => basename(path).startsWith(".")),
      ...(await readdir(this.folder, { recursive: true })).filter((name) =>
        /(\.part|\/draft)$/.test(name),
      ),
    ];
    return [
      ...drafts.map((id): Thing => ({ kind: "file", id })),
      ...machines.slice(kept).map((id): Thing => ({ kind: "machine", id: `process ${id}` })),
      ...disks.slice(kept).map((id): Thing => ({ kind: "volume", id })),
    ];
  }

  async endCluster(): Promise<void> {
    const destroyed = await this.run(["destroy", "--yes", "-c", "faulty"]);
    if (destroyed.status !== 0)
      throw new Error(`the cluster could not be destroyed:\n${destroyed.stderr}`);
  }

  async exhibits(): Promise<readonly Exhibit[]> {
    return (await this.begun()).map((text) => ({ where: "a node's command", text }));
  }

  /** The commands that the machines were given, all as one text. */
  async begun(): Promise<readonly string[]> {
    const commands = Bun.file(join(this.folder, "qemu", "commands"));
    return (await commands.exists()) ? [await commands.text()] : [];
  }

  async #writeQemu(): Promise<void> {
    await mkdir(join(this.folder, "qemu"));
    for (const name of ["qemu-system-x86_64", "qemu-system-aarch64", "qemu-img"])
      await this.writeProgram(name, "qemu-program.ts", [join(this.folder, "qemu"), name]);
    await this.answer();
    await this.makeTemplates();
    await Bun.write(join(this.folder, "qemu", "faults.json"), "[]");
    await Bun.write(join(this.folder, "empty.img"), bootableDisk());
  }
}
