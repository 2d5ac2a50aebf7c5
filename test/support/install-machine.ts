import { spawn } from "node:child_process";
import { chmod, mkdir, readFile, writeFile } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { Server, type ServerChannel, utils } from "ssh2";
import type { NodeRecord, Role } from "../../src/model/cluster-record.ts";
import {
  type ConnectionPool,
  createConnectionPool,
} from "../../src/ssh/connection/connection-pool.ts";
import { generateKeyPair } from "../../src/ssh/keys.ts";
import { createKnownHosts } from "../../src/ssh/openssh-files.ts";
import { creationFiles } from "../../src/store/creation-folder.ts";
import { once } from "../../src/system/concurrency.ts";
import { type Progress, systemClock } from "../../src/system/runtime.ts";
import { silentProgress } from "./silent-progress.ts";
import { machinePrograms } from "./install-machine-programs.ts";
import { scratchFolder } from "./scratch-folder.ts";
import { answerLogin } from "./ssh-login.ts";

/**
 * A machine in a folder: an SSH server in this process. Its commands run on this host, with a real shell, in a folder
 * that represents the machine's `/`. A few small scripts replace systemd (install-machine-programs.ts). Disposing of
 * the machine ends all its processes.
 */
export interface FolderMachine extends AsyncDisposable {
  readonly node: NodeRecord;
  /** Represents `/`. */
  readonly folder: string;
  /** Command lines that were run, without their stdin. */
  readonly commands: readonly string[];
  /** How many connections have logged in so far. */
  logins(): number;
  read(path: string): Promise<string>;
  write(path: string, text: string): Promise<void>;
  /** Closes all connections. New ones are accepted. */
  cutConnections(): void;
  /** Accepts no more connections, and closes all. */
  close(): Promise<unknown>;
}

export interface MachinesRequest {
  readonly roles: readonly Role[];
  /** Shell scripts that replace the usual programs, by name. */
  readonly programs?: Readonly<Record<string, string>>;
  /** Of the connections. */
  readonly progress?: Progress;
}

export interface FolderMachines extends AsyncDisposable {
  readonly machines: readonly FolderMachine[];
  readonly nodes: readonly NodeRecord[];
  readonly connections: ConnectionPool;
  /** Also admits the owner of this key, in the form of `authorized_keys`, to all machines. */
  admit(publicKey: string): void;
  /** Writes the key and known hosts of these machines into a cluster's folder. */
  openTo(directory: string): Promise<void>;
}

/** Why these machines can't run on this host; undefined if they can. */
export const machinesLack: string | undefined =
  process.platform === "linux" ? undefined : "folder machines need Linux (a loopback address each)";

export async function startMachines(request: MachinesRequest): Promise<FolderMachines> {
  const scratch = await scratchFolder();
  const login = generateKeyPair("login");
  await writeFile(join(scratch.path, "key"), login.privateKey, { mode: 0o600 });
  const loginKeys = [login.publicKey];
  const counts = new Map<Role, number>();
  const machines: FolderMachine[] = [];
  for (const role of request.roles) {
    const index = counts.get(role) ?? 0;
    counts.set(role, index + 1);
    const folder = join(scratch.path, `${role}_${index}`);
    machines.push(
      await startMachine({ folder, role, index, programs: request.programs ?? {}, loginKeys }),
    );
  }
  const knownHosts = createKnownHosts(join(scratch.path, "known_hosts"));
  await Promise.all(
    machines.map(async ({ node }) => knownHosts.pin(node.ssh.host, node.ssh.port, hostKeyWire)),
  );
  const connections = createConnectionPool({
    privateKeyFile: join(scratch.path, "key"),
    knownHosts,
    clock: systemClock,
    progress: request.progress ?? silentProgress,
  });
  return {
    machines,
    nodes: machines.map((machine) => machine.node),
    connections,
    admit: (publicKey) => void loginKeys.push(publicKey),
    openTo: async (directory) => {
      const files = creationFiles(directory);
      await mkdir(directory, { recursive: true, mode: 0o700 });
      await writeFile(files.privateKey, login.privateKey, { mode: 0o600 });
      const pins = createKnownHosts(files.knownHosts);
      for (const { node } of machines) await pins.pin(node.ssh.host, node.ssh.port, hostKeyWire);
    },
    [Symbol.asyncDispose]: async () => {
      await connections[Symbol.asyncDispose]();
      await Promise.all(machines.map(async (machine) => machine[Symbol.asyncDispose]()));
      await scratch[Symbol.asyncDispose]();
    },
  };
}

const hostKey = generateKeyPair("host");
const hostKeyWire = Buffer.from(hostKey.publicKey.split(" ")[1]!, "base64");

interface MachineRequest {
  readonly folder: string;
  readonly role: Role;
  readonly index: number;
  readonly programs: Readonly<Record<string, string>>;
  /** Only the owners of these public keys may log in: commands run on this host, as this user. More may be added later. */
  readonly loginKeys: readonly string[];
}

async function startMachine({
  folder,
  role,
  index,
  programs,
  loginKeys,
}: MachineRequest): Promise<FolderMachine> {
  for (const path of ["bin", "etc/systemd/system", "run", "var/lib", "opt"])
    await mkdir(join(folder, path), { recursive: true });
  for (const [name, text] of Object.entries({ ...machinePrograms(folder), ...programs })) {
    await writeFile(join(folder, "bin", name), text);
    await chmod(join(folder, "bin", name), 0o755);
  }
  await writeFile(join(folder, "etc/os-release"), 'NAME="Debian"\nID=debian\nVERSION_ID="12"\n');
  await writeFile(join(folder, "etc/resolv.conf"), "nameserver 10.0.0.2\n");
  const commands: string[] = [];
  const clients = new Set<{ end(): void }>();
  const seen = { logins: 0 };
  const server = new Server({ hostKeys: [hostKey.privateKey] }, (client) => {
    clients.add(client);
    client.on("close", () => clients.delete(client));
    client.on("error", () => {});
    client.on("authentication", (context) => answerLogin(context, loginKeys));
    client.on("ready", () => (seen.logins += 1));
    client.on("session", (accept) => {
      accept().on("exec", (acceptExec, _reject, { command }) => {
        const isRootShell = command.includes(" e2e-root-shell ");
        if (!isRootShell) commands.push(command);
        // What a root shell runs would not be redirected. Without setsid, each command comes in a session of its own.
        const line = isRootShell ? command.replace("command -v setsid", "false") : command;
        runInFolder(acceptExec(), line, folder);
      });
    });
  });
  // Each machine has its own address, so that the bootstrap server's fixed port is free on it.
  const address = `127.${1 + Math.floor(Math.random() * 250)}.${Math.floor(Math.random() * 250)}.${10 + index}`;
  await writeFile(join(folder, "address"), address);
  await new Promise<void>((resolve) => server.listen(0, address, resolve));
  const { port } = server.address() as AddressInfo;
  const node: NodeRecord = {
    id: `i-${role}-${index}`,
    role,
    index,
    state: "running",
    publicAddress: address,
    privateAddress: address,
    ssh: { host: address, port, user: "admin" },
    web: { host: address, httpPort: 80, httpsPort: 443 },
  };
  const close = once(async () => {
    const closed = new Promise((resolve) => server.close(resolve)).then(() =>
      clearInterval(ending),
    );
    // A client that is just logging in ends only afterwards.
    const ending = setInterval(() => {
      for (const client of clients) client.end();
    }, 50);
    for (const client of clients) client.end();
    await closed;
  });
  return {
    node,
    folder,
    commands,
    logins: () => seen.logins,
    read: async (path) => readFile(join(folder, path), "utf8"),
    write: async (path, text) => {
      await mkdir(dirname(join(folder, path)), { recursive: true });
      await writeFile(join(folder, path), text);
    },
    cutConnections: () => {
      for (const client of clients) client.end();
    },
    close,
    [Symbol.asyncDispose]: async () => {
      await close();
      await endUnits(folder);
    },
  };
}

const rootPaths =
  /(?<![\w.])\/(var\/lib|var\/log|etc|opt|run|proc\/net|proc\/1|sys\/module|lib\/modules)\//g;
const rootPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** Redirects paths in commands, and in scripts from stdin, to the machine's folder. Uploads and the scripts of sessions stay unchanged. */
export function intoFolder(text: string, folder: string): string {
  return text
    .replaceAll(rootPaths, `${folder}/$1/`)
    .replaceAll(rootPath, `${folder}/bin:/usr/bin:/bin`);
}

function runInFolder(channel: ServerChannel, command: string, folder: string): void {
  // The length of a session's script is in its command; the talk about the clock and that of a watch is a line at a time.
  const isExact = ["e2e-receive", "iflag=fullblock", "e2e-clock", "e2e-watch"].some((word) =>
    command.includes(word),
  );
  const child = spawn("/bin/sh", ["-c", intoFolder(command, folder)], {
    cwd: folder,
    // In a new session, as with sshd, so that it can be ended together with all processes that it starts.
    detached: true,
    env: { PATH: `${folder}/bin:/usr/bin:/bin`, MACHINE: folder, HOME: folder },
  });
  child.stdin.on("error", () => {});
  if (isExact) channel.pipe(child.stdin);
  else {
    const chunks: Buffer[] = [];
    channel.on("data", (chunk: Buffer) => chunks.push(chunk));
    channel.on("end", () => child.stdin.end(intoFolder(Buffer.concat(chunks).toString(), folder)));
  }
  child.stdout.on("data", (chunk: Buffer) => channel.write(chunk));
  child.stderr.on("data", (chunk: Buffer) => channel.stderr.write(chunk));
  child.on("close", (status) => {
    channel.exit(status ?? 255);
    channel.end();
  });
  // A lost connection ends it, as with sshd.
  channel.on("close", () => child.stdin.end());
  channel.on("error", () => {});
}

/** Ends the processes that the machine's systemd has started. Their ids are in its run folder. */
async function endUnits(folder: string): Promise<void> {
  for (const file of new Bun.Glob("*.pid").scanSync(join(folder, "run"))) {
    const pid = Number(await readFile(join(folder, "run", file), "utf8"));
    try {
      // Each is the leader of a session.
      if (pid > 1) process.kill(-pid, "SIGKILL");
    } catch {
      // It has already ended.
    }
  }
}

/** Checks on import that ssh2 can read our keys. Otherwise the failure would look like a failed login. */
if (utils.parseKey(hostKey.privateKey) instanceof Error)
  throw new Error("ssh2 does not read the host key");
