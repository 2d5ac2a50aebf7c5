/** What the worlds of all backends share: the folder in which the built program runs, and the inputs of a creation. */
import { randomBytes } from "node:crypto";
import { chmod, mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type Ended, type Running, start } from "../../e2e/support/executable.ts";
import type { Exhibit, RunChanges, Thing, World } from "../fault.ts";
import { endProcessesOf } from "../processes.ts";

const limitMs = 200_000;

export const newFolder = async (): Promise<string> => mkdtemp(join(tmpdir(), "cluster-e2e-fault-"));

/** Whether a file with a cluster is being written, or was when the program was killed. */
export async function isBegun(path: string): Promise<boolean> {
  const names = await readdir(dirname(path), { recursive: true }).catch(() => []);
  return names.some((name) => /^cluster-e2e-\w{6}\/draft$/.test(name));
}

/**
 * Signals a program while it writes a file with a cluster to the path. A process of its own watches, because this one may be busy for longer
 * than the writing takes. Throws if the program ends before.
 */
export async function interruptWhileWriting(
  path: string,
  { processId }: Running,
  signal: "SIGINT" | "SIGKILL",
): Promise<void> {
  const script =
    'until [ -e "$1"/cluster-e2e-??????/draft ]; do kill -0 "$2" || exit; sleep 0.01; done; kill -s "$3" "$2"';
  const words = [dirname(path), String(processId), signal.slice("SIG".length)];
  const watcher = Bun.spawn(["sh", "-c", script, "sh", ...words], { stderr: "ignore" });
  if ((await watcher.exited) !== 0) throw new Error("the program ended before it wrote a file");
}

export abstract class ProgramWorld implements World {
  readonly folder: string;
  readonly stateFolder: string;
  readonly temporaryFolder: string;
  readonly settleMs = 2_000;
  /** Stands in the name of what is secret, so that no two worlds share it. */
  readonly random = randomBytes(8).toString("hex");
  readonly license = `license-${this.random}`;
  readonly passwordHash = `$6$rounds=656000$hash-${this.random}`;
  abstract readonly environment: Readonly<Record<string, string>>;
  abstract readonly secrets: readonly string[];
  abstract readonly createWords: readonly string[];
  readonly #program: string;

  protected constructor(folder: string, program: string) {
    this.folder = folder;
    this.#program = program;
    this.stateFolder = join(folder, "state");
    this.temporaryFolder = join(folder, "tmp");
  }

  abstract leftovers(keepsCluster: boolean): Promise<readonly Thing[]>;
  abstract endCluster(): Promise<void>;
  abstract exhibits(): Promise<readonly Exhibit[]>;

  async run(words: readonly string[], changes: RunChanges = {}): Promise<Ended> {
    return this.start(words, changes).ended;
  }

  start(words: readonly string[], changes: RunChanges = {}): Running {
    const environment = { ...this.environment, ...changes.environment };
    return start(this.#program, words, { cwd: this.folder, limitMs, ...changes, environment });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await endProcessesOf(this.temporaryFolder);
    await rm(this.folder, { recursive: true, force: true });
  }

  /** Variables that keep the program to the world's folder. */
  protected ownEnvironment(): Readonly<Record<string, string>> {
    return {
      PATH: `${join(this.folder, "bin")}:${process.env["PATH"] ?? ""}`,
      HOME: join(this.folder, "home"),
      XDG_STATE_HOME: this.stateFolder,
      TMPDIR: this.temporaryFolder,
    };
  }

  protected async writeInputs(): Promise<void> {
    await Promise.all(
      ["tmp", "home", "bin"].map(async (name) =>
        mkdir(join(this.folder, name), { recursive: true }),
      ),
    );
    await Bun.write(join(this.folder, "artifact.sh"), "#!/bin/bash\n# variant: enterprise\n");
    await Bun.write(join(this.folder, "license.txt"), `${this.license}\n`);
    await Bun.write(
      join(this.folder, "extra.yaml"),
      `superuser_password_hash: "${this.passwordHash}"\n`,
    );
  }

  /** Puts a program first on the `PATH` that runs a script of this folder. */
  protected async writeProgram(
    name: string,
    script: string,
    words: readonly string[],
  ): Promise<void> {
    const program = [process.execPath, join(import.meta.dir, script), ...words];
    const path = join(this.folder, "bin", name);
    await Bun.write(path, `#!/bin/sh\nexec ${program.map((word) => `'${word}'`).join(" ")} "$@"\n`);
    await chmod(path, 0o755);
  }
}

/** The words of a creation, without those of a backend. */
export const createWordsWith = (words: string): readonly string[] => [
  ..."create --variant enterprise --masters 1 --public-agents 0 -c faulty".split(" "),
  ...words.split(" "),
  ..."--license-key license.txt --extra-config extra.yaml artifact.sh".split(" "),
];
