/** A Docker that is reached over TCP, and whose containers' addresses lead nowhere from here. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { freePort } from "../support/free-port.ts";
import { type Relay, relayTo } from "../support/relay.ts";
import { nodeImage } from "./support/container-engine.ts";
import { type Ended, type Running, run, start } from "./support/executable.ts";
import { type SecondDocker, computerLack, startSecondDocker } from "./support/second-computer.ts";
import { temporaryFolder } from "./support/temporary-folder.ts";

interface Elsewhere {
  readonly folder: Awaited<ReturnType<typeof temporaryFolder>>;
  readonly engine: SecondDocker;
  readonly relay: Relay;
  readonly environment: Readonly<Record<string, string>>;
}

const state: { elsewhere?: Elsewhere } = {};
const here = (): Elsewhere => state.elsewhere!;
const id = "far";
const words = (line: string): readonly string[] => line.split(" ");
const ask = (line: string): Promise<Ended> =>
  run("cluster-container", words(line), { environment: here().environment });
const begin = (line: string): Running =>
  start("cluster-container", words(line), { environment: here().environment });

/** A platform with a web server on the address of its master. */
async function writePlatform(folder: string): Promise<string> {
  const unit = "systemd-run --unit=page python3 -m http.server 8000";
  const files = {
    "platform.yaml": 'name: page\nversion: "1.0"\nweb: { port: 8000 }\n',
    install: `#!/bin/sh\n${unit}\n`,
    check: "#!/bin/sh\n",
  };
  const page = join(folder, "page");
  await mkdir(page);
  for (const [name, text] of Object.entries(files))
    await writeFile(join(page, name), text, { mode: 0o755 });
  return page;
}

/** The same engine over its socket, as in a container that has the host's, and in a context that `docker context use` chose. */
async function expectOtherWays(): Promise<void> {
  const { folder, engine, environment } = here();
  const { DOCKER_HOST: tcp, ...others } = environment;
  const agentName = ["run", "-c", id, "--node", "agent_0", "hostname"];
  const socket = { ...others, DOCKER_HOST: `unix://${engine.socket}` };
  const overSocket = await run("cluster-container", agentName, { environment: socket });
  expect(overSocket).toMatchObject({ status: 0, stdout: "agent-0\n" });
  const inContext = { ...others, DOCKER_CONFIG: join(folder.path, "docker") };
  const docker = (...argv: readonly string[]) =>
    Bun.$`docker ${argv}`.env({ PATH: process.env["PATH"]!, ...inContext }).quiet();
  await docker("context", "create", "away", "--docker", `host=${tcp}`);
  await docker("context", "use", "away");
  const shown = await run("cluster-container", ["inspect", "-c", id, "--output", "ssh-config"], {
    environment: inContext,
  });
  expect(shown.stdout).toContain("DOCKER_CONTEXT=away");
  const config = join(folder.path, "context.ssh");
  await writeFile(config, shown.stdout);
  await docker("context", "use", "default");
  expect(await Bun.$`ssh -F ${config} agent_0 hostname`.text()).toBe("agent-0\n");
}

/** Gives the engine's computer a folder that this one doesn't have at the same path, and the other way round. */
async function makeShared({ folder, engine }: Pick<Elsewhere, "folder" | "engine">): Promise<void> {
  const shared = join(folder.path, "shared");
  await mkdir(join(shared, "only-here"), { recursive: true });
  const line = `mount -t tmpfs none ${shared} && mkdir ${shared}/only-there && echo far >${shared}/only-there/note`;
  await Bun.$`nsenter --mount=/proc/${engine.processId}/ns/mnt sh -ec ${line}`;
}

beforeAll(async () => {
  if (computerLack !== undefined) return;
  const folder = await temporaryFolder();
  const engine = await startSecondDocker(folder.path);
  const image = await Bun.$`docker save ${nodeImage} | docker --host unix://${engine.socket} load`;
  if (image.exitCode !== 0) throw new Error("the second Docker did not get the image");
  await makeShared({ folder, engine });
  const relay = await relayTo(engine.socket);
  const environment = {
    DOCKER_HOST: `tcp://127.0.0.1:${relay.port}`,
    XDG_STATE_HOME: join(folder.path, "state"),
    TMPDIR: folder.path,
    CI: "true",
  };
  state.elsewhere = { folder, engine, relay, environment };
});

afterAll(async () => {
  const { elsewhere } = state;
  if (elsewhere === undefined) return;
  const left = await elsewhere.engine.docker(["ps", "--all", "--quiet"]);
  for (const container of left.split("\n").filter(Boolean))
    await elsewhere.engine.docker(["rm", "--force", "--volumes", container]);
  await elsewhere.engine[Symbol.asyncDispose]();
  await elsewhere.relay[Symbol.asyncDispose]();
  await elsewhere.folder[Symbol.asyncDispose]();
});

test.skipIf(computerLack !== undefined)(
  "a cluster in a Docker elsewhere is made, used, copied and removed through it",
  async () => {
    const { folder, engine, environment } = here();
    expect((await ask("doctor")).stdout).toContain("engine");
    const counts = "--masters 1 --agents 1 --public-agents 0 --memory 400m --wait --timeout 14m";
    const platform = await writePlatform(folder.path);
    const shared = join(folder.path, "shared");
    const create = `create -c ${id} ${counts} --node-image ${nodeImage} ${platform} --custom-volume ${shared}`;
    const refused = await ask(`${create}/only-here:/shared:ro`);
    expect(refused.status, refused.stderr).toBe(2);
    expect(refused.stderr).toContain(
      `--custom-volume: ${shared}/only-here does not exist on the computer that Docker runs on`,
    );
    expect(await engine.docker(["ps", "--all", "--quiet"])).toBe("");
    const created = await ask(`${create}/only-there:/shared:ro`);
    expect(created.status, created.stderr).toBe(0);
    expect((await ask(`run -c ${id} --node agent_0 cat /shared/note`)).stdout).toBe("far\n");

    const shown = await ask(`inspect -c ${id}`);
    expect(shown.stdout).toContain("through Docker");
    const hostname = `run -c ${id} --node agent_0 hostname`;
    expect((await ask(hostname)).stdout).toBe("agent-0\n");

    // In another shell, whose Docker is this computer's.
    const config = join(folder.path, "cluster.ssh");
    await writeFile(config, (await ask(`inspect -c ${id} --output ssh-config`)).stdout);
    expect(await Bun.$`ssh -F ${config} agent_0 hostname`.text()).toBe("agent-0\n");
    const sent = join(folder.path, "sent");
    const bytes = crypto.getRandomValues(new Uint8Array(60_000));
    await writeFile(sent, Buffer.concat(Array.from({ length: 100 }, () => bytes)));
    await Bun.$`scp -q -F ${config} ${sent} agent_0:/root/sent`;
    const sum = new Bun.CryptoHasher("sha256").update(await Bun.file(sent).bytes()).digest("hex");
    const there = await ask(`run -c ${id} --node agent_0 sha256sum /root/sent`);
    expect(there.stdout).toContain(sum);

    await expectOtherWays();
    const localPort = await freePort();
    const forwarding = begin(`forward -c ${id} master_0 ${localPort}:8000`);
    await forwarding.said("until Ctrl-C");
    expect((await fetch(`http://127.0.0.1:${localPort}/`)).status).toBe(200);
    forwarding.interrupt("SIGINT");
    expect((await forwarding.ended).stdout).toBe(`127.0.0.1:${localPort}\n`);
    const opening = begin(`web -c ${id}`);
    await opening.said("until Ctrl-C");
    opening.interrupt("SIGINT");
    expect((await opening.ended).stdout).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/\n$/);

    const address = (await ask(`run -c ${id} --node agent_0 hostname -I`)).stdout;
    for (const action of ["stop", "start"])
      expect(await ask(`node ${action} agent_0 -c ${id}`)).toMatchObject({ status: 0 });
    expect((await ask(`run -c ${id} --node agent_0 hostname -I`)).stdout).toBe(address);
    const fault = await ask(`fault disk agent_0 --fill /dev/shm --for 2s --wait -c ${id}`);
    expect(fault.status, fault.stderr).toBe(0);

    expect((await ask(`snapshot create saved -c ${id}`)).status).toBe(0);
    const copied = await ask(`create -c copy --from ${id}:saved`);
    expect(copied.status, copied.stderr).toBe(0);
    expect((await ask("run -c copy --node agent_0 hostname")).stdout).toBe("agent-0\n");

    const logs = join(folder.path, "logs");
    expect((await ask(`logs -c ${id} --output-dir ${logs}`)).status).toBe(0);
    expect(await Bun.file(join(logs, "agent_0.journal.txt")).text()).not.toBe("");

    for (const name of ["copy", id]) expect((await ask(`destroy -c ${name} --yes`)).status).toBe(0);
    expect(await engine.docker(["ps", "--all", "--quiet"])).toBe("");
    const networks = await engine.docker(["network", "ls", "--format={{.Name}}"]);
    expect(networks.split("\n").toSorted()).toEqual(["bridge", "host", "none"]);
    expect(await engine.docker(["volume", "ls", "--quiet"])).toBe("");
    expect(environment.DOCKER_HOST).toStartWith("tcp://");
  },
);
