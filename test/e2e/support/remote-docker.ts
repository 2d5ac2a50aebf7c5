/** A Docker on another computer, as people reach it: over TCP with TLS, and with SSH. Its containers' addresses lead nowhere from here. */
import { chmod, copyFile, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { until } from "../../support/until.ts";
import { openssl } from "./authority.ts";
import { computerLack, type SecondDocker, startSecondDocker } from "./second-computer.ts";

const sshd = "/usr/sbin/sshd";

/** Why there can be none here; undefined where there can. */
export const remoteLack: string | undefined =
  computerLack ??
  ["openssl", "ssh", sshd]
    .filter((program) => Bun.which(program) === null)
    .map((program) => `skipped: there is no ${program}`)[0];

export interface RemoteDocker extends AsyncDisposable {
  readonly engine: SecondDocker;
  /** The address of its computer. */
  readonly address: string;
  /** A folder with ca.pem, cert.pem and key.pem, for DOCKER_CERT_PATH. */
  readonly certificates: string;
  /** For PATH, with an `ssh` that has the configuration of this file. */
  readonly sshFolder: string;
  readonly sshConfig: string;
  /** Writes a folder like `certificates` whose certificate another authority signed, or whose certificate has expired. */
  otherCertificates(kind: "stranger" | "expired"): Promise<string>;
}

/** A range for measurements between networks (RFC 2544), which no computer here is in. */
const randomNetwork = (): string => `198.18.${Math.floor(Math.random() * 256)}`;

export async function startRemoteDocker(folder: string): Promise<RemoteDocker> {
  await using stack = new AsyncDisposableStack();
  await mkdir(folder, { recursive: true });
  const network = randomNetwork();
  const address = `${network}.2`;
  const certificates = await makeCertificates(join(folder, "certificates"), address);
  const { client, server } = certificates;
  const tls = [
    "--tlsverify",
    `--tlscacert=${join(server, "ca.pem")}`,
    `--tlscert=${join(server, "cert.pem")}`,
    `--tlskey=${join(server, "key.pem")}`,
  ];
  const engine = stack.use(await startSecondDocker(folder, [...tls, "--host=tcp://0.0.0.0:2376"]));
  await connect(engine.processId, network);
  const ssh = await startSshd(folder, engine, address);
  stack.defer(ssh.stop);
  const owned = stack.move();
  return {
    engine,
    address,
    certificates: client,
    sshFolder: ssh.programs,
    sshConfig: ssh.config,
    otherCertificates: certificates.make,
    [Symbol.asyncDispose]: () => owned[Symbol.asyncDispose](),
  };
}

/** Joins the engine's network with this one. The link ends with the engine's network. */
async function connect(processId: number, network: string): Promise<void> {
  const [here, there] = [`e2e${processId}`, `e2r${processId}`];
  const inside = ["nsenter", `--net=/proc/${processId}/ns/net`];
  await Bun.$`ip link add ${here} type veth peer name ${there} netns ${processId}`;
  await Bun.$`ip addr add ${network}.1/24 dev ${here}`;
  await Bun.$`ip link set ${here} up`;
  await Bun.$`${inside} ip addr add ${network}.2/24 dev ${there}`;
  await Bun.$`${inside} ip link set ${there} up`;
}

async function makeCertificates(folder: string, address: string) {
  const at = (...names: readonly string[]): string => join(folder, ...names);
  await mkdir(folder);
  const key = ["-newkey", "rsa:2048", "-nodes"];
  for (const name of ["own", "other"]) {
    const files = ["-keyout", at(`${name}.key`), "-out", at(`${name}.pem`)];
    await openssl(["req", "-x509", ...key, ...files, "-subj", `/CN=${name}`, "-days", "30"]);
  }
  const issue = async (name: string, authority: string, use: string, days = "30") => {
    await mkdir(at(name));
    const request = at(name, "request.pem");
    const files = ["-keyout", at(name, "key.pem"), "-out", request];
    await openssl(["req", ...key, ...files, "-subj", `/CN=${name}`]);
    await writeFile(
      at(name, "extensions"),
      `subjectAltName=IP:${address}\nextendedKeyUsage=${use}\n`,
    );
    const signer = [
      "-CA",
      at(`${authority}.pem`),
      "-CAkey",
      at(`${authority}.key`),
      "-CAcreateserial",
    ];
    const form = ["-extfile", at(name, "extensions"), "-days", days, "-out", at(name, "cert.pem")];
    await openssl(["x509", "-req", "-in", request, ...signer, ...form]);
    await copyFile(at("own.pem"), at(name, "ca.pem"));
    return at(name);
  };
  return {
    server: await issue("server", "own", "serverAuth"),
    client: await issue("client", "own", "clientAuth"),
    make: async (kind: "stranger" | "expired"): Promise<string> =>
      kind === "stranger"
        ? issue(kind, "other", "clientAuth")
        : issue(kind, "own", "clientAuth", "-1"),
  };
}

/** An sshd in the engine's network, whose logins find that engine. */
async function startSshd(folder: string, engine: SecondDocker, address: string) {
  const at = (name: string): string => join(folder, name);
  for (const name of ["host-key", "user-key"])
    await Bun.$`ssh-keygen -q -t ed25519 -N "" -f ${at(name)}`;
  await copyFile(at("user-key.pub"), at("authorized"));
  await mkdir("/run/sshd", { recursive: true, mode: 0o755 });
  // The tests' folder belongs to everybody. SHLVL keeps bash from the start files of this computer's user.
  await writeFile(
    at("sshd_config"),
    `HostKey ${at("host-key")}\nAuthorizedKeysFile ${at("authorized")}\nStrictModes no\nUsePAM no\n` +
      `PermitRootLogin yes\nPasswordAuthentication no\nPidFile none\n` +
      `SetEnv DOCKER_HOST=unix://${engine.socket} PATH=${process.env["PATH"]} SHLVL=1\n`,
  );
  const words = ["nsenter", `--net=/proc/${engine.processId}/ns/net`, sshd, "-D", "-e"];
  const log = Bun.file(at("sshd.log"));
  const child = Bun.spawn([...words, "-f", at("sshd_config")], { stdout: log, stderr: log });
  const [algorithm, key] = (await Bun.file(at("host-key.pub")).text()).split(" ");
  await writeFile(at("known"), `${address} ${algorithm} ${key}\n`);
  const config = at("ssh_config");
  await writeFile(
    config,
    `UserKnownHostsFile ${at("known")}\nIdentityFile ${at("user-key")}\nIdentitiesOnly yes\n` +
      `ControlMaster auto\nControlPath ${at("master-%p")}\nControlPersist 10\n`,
  );
  const programs = at("programs");
  await mkdir(programs);
  await writeFile(
    join(programs, "ssh"),
    `#!/bin/sh\nexec ${Bun.which("ssh")} -F "\${E2E_SSH_CONFIG:-${config}}" "$@"\n`,
  );
  await chmod(join(programs, "ssh"), 0o755);
  await until(
    "sshd answers",
    async () =>
      (await Bun.$`ssh -F ${config} root@${address} true`.quiet().nothrow()).exitCode === 0,
  );
  const stop = async (): Promise<void> => {
    await Bun.$`ssh -F ${config} -O exit root@${address}`.quiet().nothrow();
    child.kill();
    await child.exited;
  };
  return { programs, config, stop };
}
