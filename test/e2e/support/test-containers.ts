/** `cluster-container` on this machine's Docker, with a state folder and cluster ids of the test's own. */
import { randomBytes } from "node:crypto";
import { chmod } from "node:fs/promises";
import { join } from "node:path";
import type { Ended, Running, StartOptions } from "./executable.ts";
import { run, start } from "./executable.ts";
import { temporaryFolder } from "./temporary-folder.ts";
import type { Inspected } from "./test-cloud.ts";

/** The image that the local cloud's machines are made of as well: no registry is needed. */
export const nodeImage = "localhost/cluster-e2e-machine:debian-12";

export interface TestContainers extends AsyncDisposable {
  /** A folder of this test's own, removed with it. */
  readonly folder: string;
  readonly stateFolder: string;
  /** A cluster id that nobody else has. */
  id(name: string): string;
  run(words: readonly string[], options?: Partial<StartOptions>): Promise<Ended>;
  start(words: readonly string[], options?: Partial<StartOptions>): Running;
  inspect(clusterId: string): Promise<Inspected>;
  /** Names of all containers and networks that belong to the cluster id, stopped ones too. */
  things(clusterId: string): Promise<readonly string[]>;
}

export async function startTestContainers(): Promise<TestContainers> {
  const folder = await temporaryFolder();
  const prefix = `e2e-${randomBytes(4).toString("hex")}`;
  const state = join(folder.path, "state");
  const environment = { XDG_STATE_HOME: state, TMPDIR: folder.path, CI: "true" };
  const options = (given: Partial<StartOptions> = {}): StartOptions => ({
    ...given,
    environment: { ...environment, ...given.environment },
  });
  return {
    folder: folder.path,
    stateFolder: join(state, "cluster-e2e", "container"),
    id: (name) => `${prefix}-${name}`,
    run: (words, given) => run("cluster-container", words, options(given)),
    start: (words, given) => start("cluster-container", words, options(given)),
    inspect: async (clusterId) => {
      const words = ["inspect", "--output", "json", "--cluster-id", clusterId];
      const { stdout } = await run("cluster-container", words, options());
      return (JSON.parse(stdout) as { readonly cluster: Inspected }).cluster;
    },
    things,
    [Symbol.asyncDispose]: async () => {
      const left = (await labelled("ps --all", "{{.ID}} {{.Names}}")).filter((line) => line.includes(prefix));
      const networks = (await labelled("network ls", "{{.ID}} {{.Name}}")).filter((line) => line.includes(prefix));
      for (const line of left) await docker(["rm", "--force", "--volumes", line.split(" ")[0]!]);
      for (const line of networks) await docker(["network", "rm", line.split(" ")[0]!]);
      await folder[Symbol.asyncDispose]();
    },
  };
}

async function things(clusterId: string): Promise<readonly string[]> {
  const filter = `--filter=label=cluster-e2e.cluster-id=${clusterId}`;
  const found = await Promise.all([
    docker(["ps", "--all", filter, "--format={{.Names}}"]),
    docker(["network", "ls", filter, "--format={{.Name}}"]),
  ]);
  return found.flatMap((text) => text.split("\n")).filter((line) => line !== "");
}

async function labelled(words: string, format: string): Promise<readonly string[]> {
  const text = await docker([...words.split(" "), "--filter=label=cluster-e2e.cluster-id", `--format=${format}`]);
  return text.split("\n");
}

export async function docker(words: readonly string[]): Promise<string> {
  const child = Bun.spawn(["docker", ...words], { stdout: "pipe", stderr: "pipe" });
  const [status, stdout, stderr] = await Promise.all([
    child.exited,
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  if (status !== 0) throw new Error(`docker ${words.join(" ")} ended with ${status}: ${stderr}`);
  return stdout.trim();
}

/** A PATH on which `docker` first does these lines of shell, which name the real one. */
export async function pathWithDocker(folder: string, lines: (real: string) => string): Promise<string> {
  const bin = join(folder, "bin");
  const real = Bun.which("docker") ?? "docker";
  await Bun.write(join(bin, "docker"), `#!/bin/bash\n${lines(real)}\nexec ${real} "$@"\n`);
  await chmod(join(bin, "docker"), 0o755);
  return `${bin}:${process.env["PATH"]}`;
}
