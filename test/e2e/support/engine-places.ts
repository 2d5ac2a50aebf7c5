/** The engines that people have, each with nothing in it but the image of the tests' nodes. */
import { chmod, chown, copyFile } from "node:fs/promises";
import { join } from "node:path";
import { filesIn, type LifePlace, thingsIn } from "./cluster-life.ts";
import { bareNodeImage, runEngine, startPodman } from "./container-engine.ts";
import { executablePath, run } from "./executable.ts";
import { startNewerComputer } from "./newer-engines.ts";
import { asUser, startSecondDocker, user } from "./second-computer.ts";
import { temporaryFolder } from "./temporary-folder.ts";

export interface EnginePlace extends LifePlace, AsyncDisposable {
  /** Its folder here. */
  readonly folder: string;
  /** Runs a command of the engine; resolves with what it prints. */
  engine(words: readonly string[]): Promise<string>;
}

/** This computer's Docker once more, with a network of its own. */
export async function ownDocker(more: readonly string[]): Promise<EnginePlace> {
  await using stack = new AsyncDisposableStack();
  const { path } = stack.use(await temporaryFolder());
  // userns-remap needs a path that every user can follow.
  await chmod(path, 0o755);
  const second = stack.use(await startSecondDocker(path, more));
  const host = `unix://${second.socket}`;
  await Bun.$`docker save ${bareNodeImage} | docker --host ${host} load`.quiet();
  const environment = { DOCKER_HOST: host, XDG_STATE_HOME: path, TMPDIR: path, CI: "true" };
  const network = `--net=/proc/${second.processId}/ns/net`;
  const command = ["nsenter", network, executablePath("cluster-container")];
  const owned = stack.move();
  return {
    folder: path,
    path,
    ...filesIn(path),
    run: (words) => run("cluster-container", words, { environment, command }),
    engine: second.docker,
    things: async () => thingsIn(second.docker),
    [Symbol.asyncDispose]: () => owned[Symbol.asyncDispose](),
  };
}

/** `defaults`: lines of `containers.conf` about every container. */
export async function ownPodman(defaults: string): Promise<EnginePlace> {
  await using stack = new AsyncDisposableStack();
  const { path } = stack.use(await temporaryFolder());
  const engine = stack.use(await startPodman(join(path, "podman"), bareNodeImage, defaults));
  const environment = { ...engine.environment, XDG_STATE_HOME: path, TMPDIR: path, CI: "true" };
  const owned = stack.move();
  return {
    folder: path,
    path,
    ...filesIn(path),
    run: ([command = "", ...words]) =>
      run("cluster-container", [command, "--engine=podman", ...words], { environment }),
    engine: engine.run,
    things: async () => thingsIn(engine.run),
    [Symbol.asyncDispose]: () => owned[Symbol.asyncDispose](),
  };
}

/** This computer's Podman as an ordinary user without ranges of ids runs it. It has no images. */
export async function rootlessPodman(): Promise<EnginePlace> {
  await using stack = new AsyncDisposableStack();
  const { path } = stack.use(await temporaryFolder());
  await chown(path, user, user);
  // The repository may be in a folder that only root can open.
  const program = join(path, "cluster-container");
  await copyFile(executablePath("cluster-container"), program);
  const environment = { HOME: path, XDG_RUNTIME_DIR: path, TMPDIR: path, CI: "true" };
  const command = [...asUser, program];
  const [first, ...others] = [...asUser, "podman"];
  const engine = async (words: readonly string[]): Promise<string> =>
    runEngine(first, [...others, ...words], environment);
  // Podman leaves this process, which keeps its user's namespace.
  stack.defer(async () => {
    const left = await Bun.file(join(path, "libpod", "tmp", "pause.pid")).text();
    process.kill(Number(left));
  });
  const owned = stack.move();
  return {
    folder: path,
    path,
    ...filesIn(path),
    run: ([name = "", ...words]) =>
      run("cluster-container", [name, "--engine=podman", ...words], {
        environment,
        command,
        cwd: path,
      }),
    engine,
    things: async () => thingsIn(engine),
    [Symbol.asyncDispose]: () => owned[Symbol.asyncDispose](),
  };
}

/** An engine of a newer Debian. `settings`: Docker's `daemon.json`. */
export async function newerEngine(
  engine: "docker" | "podman",
  suite: "trixie" | "sid",
  settings: object = {},
): Promise<EnginePlace> {
  await using stack = new AsyncDisposableStack();
  const computer = stack.use(await startNewerComputer(suite, settings));
  const { folder, program } = computer;
  await Bun.$`docker save --output ${join(folder, "node.tar")} ${bareNodeImage}`;
  await program(engine, "load", "--input=/exchange/node.tar");
  const onEngine = async (words: readonly string[]): Promise<string> => program(engine, ...words);
  const owned = stack.move();
  return {
    folder,
    path: "/exchange",
    ...filesIn(folder),
    run: ([command = "", ...words]) => computer.ask([command, `--engine=${engine}`, ...words]),
    engine: onEngine,
    things: async () => thingsIn(onEngine),
    [Symbol.asyncDispose]: () => owned[Symbol.asyncDispose](),
  };
}
