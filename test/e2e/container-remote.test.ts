/** A Docker on another computer: over TCP with TLS, in a context, and with SSH. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { cp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import {
  bareOptions,
  expectLife,
  filesIn,
  type LifePlace,
  succeed,
  thingsIn,
} from "./support/cluster-life.ts";
import { bareNodeImage } from "./support/container-engine.ts";
import { type Ended, run } from "./support/executable.ts";
import { type RemoteDocker, remoteLack, startRemoteDocker } from "./support/remote-docker.ts";
import { temporaryFolder } from "./support/temporary-folder.ts";

type Environment = Readonly<Record<string, string>>;

interface Remote {
  readonly folder: Awaited<ReturnType<typeof temporaryFolder>>;
  readonly docker: RemoteDocker;
}

const state: { remote?: Remote } = {};
const here = (): Remote => state.remote!;

const common = (): Environment => ({
  XDG_STATE_HOME: join(here().folder.path, "state"),
  TMPDIR: here().folder.path,
  CI: "true",
});
const overTls = (certificates = here().docker.certificates): Environment => ({
  ...common(),
  DOCKER_HOST: `tcp://${here().docker.address}:2376`,
  DOCKER_TLS_VERIFY: "1",
  DOCKER_CERT_PATH: certificates,
});
const overSsh = (host = `root@${here().docker.address}`): Environment => ({
  ...common(),
  DOCKER_HOST: `ssh://${host}`,
  PATH: `${here().docker.sshFolder}:${process.env["PATH"]}`,
});

const ask = (line: string, environment: Environment): Promise<Ended> =>
  run("cluster-container", line.split(" "), { environment });

const place = (environment: Environment): LifePlace => ({
  path: here().folder.path,
  ...filesIn(here().folder.path),
  run: (words) => run("cluster-container", words, { environment }),
  things: async () => thingsIn(here().docker.engine.docker),
});

async function throughOpenssh(id: string, environment: Environment): Promise<string> {
  const config = join(here().folder.path, `${id}.ssh`);
  await writeFile(
    config,
    await succeed(place(environment), `inspect -c ${id} --output ssh-config`),
  );
  const PATH = environment["PATH"] ?? process.env["PATH"]!;
  return await Bun.$`ssh -F ${config} agent_0 hostname`.env({ PATH, HOME: "/root" }).text();
}

async function expectRemoteLife(id: string, environment: Environment): Promise<void> {
  const there = place(environment);
  await expectLife(there, id, async () => {
    expect(await succeed(there, `inspect -c ${id}`)).toContain("through Docker");
    expect(await throughOpenssh(id, environment)).toBe("agent-0\n");
  });
}

beforeAll(async () => {
  if (remoteLack !== undefined) return;
  const folder = await temporaryFolder();
  const docker = await startRemoteDocker(folder.path);
  state.remote = { folder, docker };
  const socket = `unix://${docker.engine.socket}`;
  const image = await Bun.$`docker save ${bareNodeImage} | docker --host ${socket} load`.quiet();
  if (image.exitCode !== 0) throw new Error("the remote Docker did not get the image");
});

afterAll(async () => {
  const { remote } = state;
  if (remote === undefined) return;
  const { engine } = remote.docker;
  const left = await engine.docker(["ps", "--all", "--quiet"]);
  for (const container of left.split("\n").filter(Boolean))
    await engine.docker(["rm", "--force", "--volumes", container]);
  await remote.docker[Symbol.asyncDispose]();
  await remote.folder[Symbol.asyncDispose]();
});

/** What `list` says of a Docker that can't be used, and how it ends. */
async function refusal(environment: Environment): Promise<string> {
  const { status, stdout, stderr } = await ask("list", environment);
  expect({ status, stdout }, stderr).toEqual({ status: 5, stdout: "" });
  return stderr;
}

test.skipIf(remoteLack !== undefined)(
  "wrong, expired and missing certificates each have their reason and remedy",
  async () => {
    const { docker, folder } = here();
    const stranger = await docker.otherCertificates("stranger");
    expect(await refusal(overTls(stranger))).toContain("refuses this computer's certificate");
    const expired = await refusal(overTls(await docker.otherCertificates("expired")));
    expect(expired).toContain("until when it is valid");
    const lacking = join(folder.path, "lacking");
    await cp(docker.certificates, lacking, { recursive: true });
    await rm(join(lacking, "ca.pem"));
    expect(await refusal(overTls(lacking))).toContain("lacking/ca.pem: no such file");
    await cp(join(stranger, "..", "other.pem"), join(lacking, "ca.pem"));
    expect(await refusal(overTls(lacking))).toContain("The authority in ca.pem did not sign");
    const { DOCKER_TLS_VERIFY: _, ...plain } = overTls();
    expect(await refusal(plain)).toContain("Docker's daemon wants TLS");
  },
);

test.skipIf(remoteLack !== undefined)(
  "an SSH host that isn't known, and a login that is refused, have their reason and remedy",
  async () => {
    const { docker, folder } = here();
    const config = join(folder.path, "strange_config");
    const environment = { ...overSsh(), E2E_SSH_CONFIG: config };
    await writeFile(config, "UserKnownHostsFile /dev/null\n");
    const unknown = await refusal(environment);
    expect(unknown).toContain("SSH does not know the host key of Docker's computer");
    expect(unknown).toContain("ssh-keygen -R");
    const known = join(folder.path, "known");
    await writeFile(
      config,
      `UserKnownHostsFile ${known}\nIdentityFile ${known}\nIdentitiesOnly yes\n`,
    );
    expect(await refusal(environment)).toContain("SSH refuses the login to Docker's computer");
    const unreached = await refusal(overSsh(`root@${docker.address}:1`));
    expect(unreached).toContain("SSH does not reach Docker's computer");
  },
);

// Shows R110.
test.skipIf(remoteLack !== undefined)("over TCP with TLS, a cluster works like a near one", () =>
  expectRemoteLife("tls", overTls()),
);

test.skipIf(remoteLack !== undefined)(
  "a context with certificates leads to its clusters, also from other shells",
  async () => {
    const { docker, folder } = here();
    const environment = { ...common(), DOCKER_CONFIG: join(folder.path, "docker") };
    const at = (name: string): string => join(docker.certificates, name);
    const host = `host=tcp://${docker.address}:2376`;
    const address = `${host},ca=${at("ca.pem")},cert=${at("cert.pem")},key=${at("key.pem")}`;
    const client = (...words: readonly string[]) =>
      Bun.$`docker context ${words}`.env({ PATH: process.env["PATH"]!, ...environment }).quiet();
    await client("create", "far", "--docker", address);
    await client("use", "far");
    const there = place(environment);
    await succeed(there, `create -c far --agents 1 --public-agents 0 ${bareOptions}`);
    expect(await throughOpenssh("far", environment)).toBe("agent-0\n");
    expect(await succeed(place(overTls()), "run -c far --node agent_0 hostname")).toBe("agent-0\n");
    await succeed(there, "destroy -c far --yes");
    expect(await docker.engine.docker(["ps", "--all", "--quiet"])).toBe("");
  },
);

test.skipIf(remoteLack !== undefined)("with SSH, a cluster works like a near one", () =>
  expectRemoteLife("ssh", overSsh()),
);

test.skipIf(remoteLack !== undefined)(
  "with SSH and without ControlMaster, each command of Docker logs in by itself",
  async () => {
    const { docker, folder } = here();
    const config = join(folder.path, "own_logins");
    const lines = (await Bun.file(docker.sshConfig).text()).split("\n");
    const kept = lines.filter((line) => !line.startsWith("Control"));
    await writeFile(config, `${kept.join("\n")}ControlMaster no\n`);
    const there = place({ ...overSsh(), E2E_SSH_CONFIG: config });
    await succeed(there, `create -c own --agents 1 --public-agents 0 ${bareOptions}`);
    expect(await succeed(there, "run -c own --node agent_0 hostname")).toBe("agent-0\n");
    await succeed(there, "destroy -c own --yes");
    expect(await docker.engine.docker(["ps", "--all", "--quiet"])).toBe("");
  },
);
