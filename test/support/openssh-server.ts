import { existsSync, readFileSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { userInfo } from "node:os";
import { join } from "node:path";
import { generateKeyPair } from "../../src/ssh/keys.ts";
import type { KeyPair } from "../../src/ssh/keys.ts";
import { freePort } from "./free-port.ts";
import { scratchFolder } from "./scratch-folder.ts";

/** A real sshd on loopback that accepts root, started for one test. */
export interface OpensshServer extends AsyncDisposable {
  readonly port: number;
  readonly user: string;
  readonly loginKey: KeyPair;
  /** The host key that it started with. */
  readonly firstHostKey: KeyPair;
  readonly hostKeyFolder: string;
  /** A shell command that makes it reload its host keys. */
  readonly reload: string;
  readonly pid: number;
  log(): Promise<string>;
  /** Resolves when it accepts connections. */
  listening(): Promise<void>;
}

const sshd = ["/usr/sbin/sshd", "/usr/local/sbin/sshd"].find((path) => existsSync(path));

/** Why tests with a real sshd can't run here; undefined if they can. */
export const opensshLack: string | undefined =
  sshd === undefined
    ? "no sshd (Debian: openssh-server)"
    : userInfo().uid === 0
      ? undefined
      : "sshd needs root here";

export async function startOpensshServer(extraSettings: readonly string[]): Promise<OpensshServer> {
  if (sshd === undefined) throw new Error(opensshLack);
  const folder = await scratchFolder();
  const hostKeyFolder = join(folder.path, "host keys");
  const loginKey = generateKeyPair("login");
  const firstHostKey = generateKeyPair("first");
  await mkdir(hostKeyFolder);
  await mkdir("/run/sshd", { recursive: true, mode: 0o755 });
  await writeFile(join(hostKeyFolder, "ssh_host_ed25519_key"), firstHostKey.privateKey, {
    mode: 0o600,
  });
  await writeFile(join(hostKeyFolder, "ssh_host_ed25519_key.pub"), `${firstHostKey.publicKey}\n`);
  await writeFile(join(folder.path, "authorized_keys"), `${loginKey.publicKey}\n`, { mode: 0o600 });
  const port = await freePort();
  await writeFile(
    join(folder.path, "sshd_config"),
    configuration(folder.path, port, extraSettings),
  );
  const logFile = join(folder.path, "sshd.log");
  const child = Bun.spawn([sshd, "-D", "-E", logFile, "-f", join(folder.path, "sshd_config")], {
    stdio: ["ignore", "ignore", "ignore"],
  });
  await listening(port);
  return {
    port,
    user: "root",
    loginKey,
    firstHostKey,
    hostKeyFolder,
    reload: `kill -HUP ${child.pid}`,
    pid: child.pid,
    log: () => readFile(logFile, "utf8"),
    listening: () => listening(port),
    [Symbol.asyncDispose]: async () => {
      // Its connections go with it, as those of a machine do: a client in the background ends then.
      child.kill("SIGSTOP");
      for (const connection of childrenOf(child.pid)) process.kill(connection, "SIGKILL");
      child.kill("SIGKILL");
      await child.exited;
      await folder[Symbol.asyncDispose]();
    },
  };
}

function configuration(folder: string, port: number, extraSettings: readonly string[]): string {
  return [
    ...extraSettings,
    `Port ${port}`,
    "ListenAddress 127.0.0.1",
    `HostKey "${folder}/host keys/ssh_host_ed25519_key"`,
    `AuthorizedKeysFile ${folder}/authorized_keys`,
    "PidFile none",
    "StrictModes no",
    "UsePAM no",
    "UseDNS no",
    "PasswordAuthentication no",
    "PermitRootLogin prohibit-password",
    "LogLevel VERBOSE",
    // The start-up files of this machine's root must not affect the tests.
    `SetEnv HOME=${folder}`,
    "",
  ].join("\n");
}

function childrenOf(pid: number): readonly number[] {
  const path = `/proc/${pid}/task/${pid}/children`;
  const text = existsSync(path) ? readFileSync(path, "utf8") : "";
  return text.split(" ").filter(Boolean).map(Number);
}

async function listening(port: number): Promise<void> {
  for (let tries = 0; tries < 200; tries += 1) {
    try {
      const socket = await Bun.connect({ hostname: "127.0.0.1", port, socket: { data: () => {} } });
      socket.end();
      return;
    } catch {
      await Bun.sleep(25);
    }
  }
  throw new Error(`sshd doesn't listen on port ${port}`);
}
