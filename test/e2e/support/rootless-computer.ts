/** A computer with cgroups 2 whose user has rootless engines: a virtual machine with those of a release of Debian. */
import { expect } from "bun:test";
import { serveOnLoopback } from "../../support/loopback-server.ts";
import { type LifePlace, thingsIn } from "./cluster-life.ts";
import { bareNodeImage } from "./container-engine.ts";
import { type Ended, executablePath } from "./executable.ts";
import { buildVmImage, startTestVms } from "./test-vms.ts";

export interface RootlessComputer extends AsyncDisposable {
  /** Runs a line of shell there, as its user or as root; resolves with what it prints, and fails where it does. */
  shell(user: "e2e" | "root", line: string): Promise<string>;
  /** Runs `cluster-container` there, as its user. */
  run(words: readonly string[]): Promise<Ended>;
  /** A place of its user's clusters. */
  place(engine: "docker" | "podman"): LifePlace;
}

const home = "/home/e2e";
const environment = ["CI=true", "COLUMNS=10000", "XDG_RUNTIME_DIR=/run/user/1000"];

/** Podman 4.3 stores whole copies unless it is told to use overlay. The setup tool of Docker is the one that its documentation names. */
const prepare = `
loginctl enable-linger e2e
mkdir -p /etc/containers
printf '[storage]\\ndriver = "overlay"\\n' >/etc/containers/storage.conf
`;
const prepareUser = `
use() {
  loaded=$("$1" load --quiet --input /opt/nodes.tar | sed -n 's/^Loaded image: //p')
  "$1" tag "$loaded" ${bareNodeImage}
}
use podman
PATH=/usr/share/docker.io/contrib:$PATH dockerd-rootless-setuptool.sh install
docker context use rootless
use docker
`;

export async function startRootlessComputer(
  kind: "--rootless" | "--rootless-13",
): Promise<RootlessComputer> {
  await using stack = new AsyncDisposableStack();
  const image = await buildVmImage(kind);
  const vms = stack.use(await startTestVms());
  const id = vms.id("host");
  const size = ["--memory", "3g", "--cpus", "2", "--disk-size", "12g"];
  const create = ["create", "--fresh-boot", "--agents", "0", "--public-agents", "0", ...size];
  const created = await vms.run([...create, "--image", image, "-c", id, "example:bare"]);
  expect(created.status, created.stderr).toBe(0);
  const run = async (user: string, words: readonly string[]): Promise<Ended> => {
    const as = ["sudo", "-u", user, "-H", "env", "-C", home, ...environment];
    return vms.run(["run", "-c", id, "--no-test-env", ...as, ...words]);
  };
  const shell: RootlessComputer["shell"] = async (user, line) => {
    const ended = await run(user, ["sh", "-ec", line]);
    expect(ended.status, `${line}: ${ended.stdout}${ended.stderr}`).toBe(0);
    return ended.stdout.trim();
  };
  await shell("root", prepare);
  await bringProgram(shell);
  await shell("e2e", prepareUser);
  const owned = stack.move();
  const ask = async (words: readonly string[]): Promise<Ended> =>
    run("e2e", ["cluster-container", ...words]);
  return {
    shell,
    run: ask,
    place: (engine) => ({
      path: home,
      write: async (name, text) => shell("e2e", `printf %s '${text}' >'${name}'`),
      read: async (name) => shell("e2e", `cat '${name}'`),
      run: async ([command = "", ...words]) => ask([command, `--engine=${engine}`, ...words]),
      things: async () =>
        thingsIn(async (words) => shell("e2e", `${engine} ${words.map(quoted).join(" ")}`)),
    }),
    [Symbol.asyncDispose]: () => owned[Symbol.asyncDispose](),
  };
}

const quoted = (word: string): string => `'${word}'`;

/** Not over SSH: where a processor is translated, deciphering its 100 MB takes minutes. */
async function bringProgram(shell: RootlessComputer["shell"]): Promise<void> {
  const program = Bun.file(executablePath("cluster-container"));
  using server = serveOnLoopback(() => new Response(program), { host: "10.0.2.2" });
  const path = "/usr/local/bin/cluster-container";
  await shell("root", `curl -fsS -o ${path} http://10.0.2.2:${server.port}/ && chmod +x ${path}`);
}
