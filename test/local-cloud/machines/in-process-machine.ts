import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type Server as NetServer, type Socket } from "node:net";
import {
  type Connection,
  Server as SshServer,
  type ServerChannel,
  type Session,
  utils,
} from "ssh2";
import { answerLogin } from "../../support/ssh-login.ts";
import { type LoginSettings, readLoginSettings } from "./cloud-config.ts";
import type { ExecHandler, ExecMachine, ExecResult, LoginShell } from "./exec.ts";
import type { MachineRequest } from "./machine-driver.ts";
import {
  type RootShellBreaks,
  type RootShellLine,
  rootShellToken,
  serveRootShell,
} from "./root-shell.ts";
import { newHostKey } from "./scripted-answers.ts";

export interface InProcessSettings {
  readonly publicAddress: string;
  readonly sshPort: number;
  readonly onExec: ExecHandler;
  readonly loginShell: () => LoginShell;
  /** Whether a connection with this many open sessions may open another, like MaxSessions. Default: always. */
  readonly admitsSession?: (openSessions: number) => boolean;
  /** When its root shells end. Default: it has none, so that each command comes in a session of its own. */
  readonly rootShellBreaks?: (() => RootShellBreaks | undefined) | undefined;
  /** Called with the line of each session that begins, those of root shells included. */
  readonly onSession?: ((session: SessionStart) => void) | undefined;
  /** Where a replaced host key is kept for the machine's next start. */
  readonly hostKeyFile?: string;
}

export interface SessionStart {
  readonly instanceId: string;
  readonly command: string;
}

interface Execution {
  readonly channel: ServerChannel;
  readonly user: string;
  readonly command: string;
  readonly stdin: Promise<Uint8Array>;
}

/** A machine that is an SSH server in this process, with real keys, real logins and scripted commands. */
export class InProcessMachine {
  readonly #request: MachineRequest;
  readonly #settings: InProcessSettings;
  readonly #sockets = new Set<Socket>();
  readonly #console: string[] = [];
  #login: LoginSettings | undefined;
  #ssh: SshServer | undefined;
  /** The last one, which survives a restart. */
  #hostKey: string | undefined;
  #listener: NetServer | undefined;

  constructor(request: MachineRequest, settings: InProcessSettings) {
    this.#request = request;
    this.#settings = settings;
  }

  get consoleText(): string {
    return this.#console.map((line) => `${line}\n`).join("");
  }

  /** Parses the user data like cloud-init, then listens. */
  async start(): Promise<void> {
    const { userData, imageUser, hostname } = this.#request;
    this.#login = readLoginSettings(userData, imageUser);
    const { hostKeyFile } = this.#settings;
    const kept =
      hostKeyFile !== undefined && existsSync(hostKeyFile)
        ? readFileSync(hostKeyFile, "utf8")
        : this.#hostKey;
    this.#replaceHostKey(kept ?? this.#login.hostKey ?? newHostKey());
    const listener = createServer((socket) => this.#connected(socket));
    this.#listener = listener;
    await new Promise<void>((resolve, reject) => {
      listener.once("error", reject);
      listener.listen(this.#settings.sshPort, this.#settings.publicAddress, resolve);
    });
    this.#console.push(
      `cloud-init: users ${[...this.#login.users.keys()].join(", ")}`,
      `${hostname} login:`,
    );
  }

  /** Closes all connections at once, like a power cut. */
  async stop(): Promise<void> {
    const listener = this.#listener;
    this.#listener = undefined;
    for (const socket of this.#sockets) socket.destroy();
    if (listener === undefined) return;
    this.#console.push("power off");
    await new Promise((resolve) => {
      listener.close(resolve);
    });
  }

  /** An ssh2 server can't change its host key, so each key has its own server. The listener passes sockets to the newest. */
  #replaceHostKey(privateKey: string): string {
    const parsed = utils.parseKey(privateKey);
    if (parsed instanceof Error) throw parsed;
    this.#hostKey = privateKey;
    this.#ssh = new SshServer({ hostKeys: [privateKey] }, (connection) => this.#serve(connection));
    const line = `${parsed.type} ${parsed.getPublicSSH().toString("base64")}`;
    this.#console.push(`host key: ${line}`);
    return line;
  }

  #connected(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on("close", () => this.#sockets.delete(socket));
    this.#ssh!.injectSocket(socket);
  }

  #serve(connection: Connection): void {
    const login = { user: "" };
    // A client may disconnect at any time.
    connection.on("error", () => undefined);
    connection.on("authentication", (context) => {
      login.user = context.username;
      answerLogin(context, this.#login!.users.get(context.username) ?? []);
    });
    const open = { sessions: 0 };
    connection.on("session", (accept, reject) => {
      if (this.#settings.admitsSession?.(open.sessions) === false) {
        reject();
        return;
      }
      open.sessions += 1;
      this.#serveSession(accept(), login.user, () => {
        open.sessions -= 1;
      });
    });
  }

  #serveSession(session: Session, user: string, onClose: () => void): void {
    session.on("pty", (accept) => accept?.());
    session.on("env", (accept) => accept?.());
    session.on("exec", (accept, _reject, { command }) => {
      const channel = accept();
      channel.on("close", onClose);
      const { instanceId } = this.#request;
      this.#settings.onSession?.({ instanceId, command });
      const token = rootShellToken(command);
      const served =
        token === undefined
          ? this.#exec(channel, user, command)
          : this.#rootShell(channel, { user, token, command });
      served.catch((error: unknown) => this.#console.push(String(error)));
    });
  }

  async #exec(channel: ServerChannel, user: string, command: string): Promise<void> {
    const gone = new AbortController();
    channel.on("close", () => gone.abort());
    channel.on("error", () => gone.abort());
    const stdin = readAll(channel);
    try {
      const { before, instead } = this.#settings.loginShell();
      channel.stderr.write(before?.stderr ?? "");
      channel.write(before?.stdout ?? "");
      const result =
        instead ?? (await this.#execute({ channel, user, command, stdin }, gone.signal));
      if (gone.signal.aborted) return;
      channel.stderr.write(result.stderr);
      channel.write(result.stdout);
      channel.exit(result.status);
    } catch (error) {
      if (gone.signal.aborted) return;
      channel.stderr.write(`${String(error)}\n`);
      channel.exit(255);
    }
    channel.end();
  }

  async #rootShell(
    channel: ServerChannel,
    {
      user,
      token,
      command,
    }: { readonly user: string; readonly token: string; readonly command: string },
  ): Promise<void> {
    const breaks = this.#settings.rootShellBreaks?.();
    if (breaks === undefined) {
      // As on a machine without setsid: each command then comes in a session of its own.
      const { begin } = marksOf(command);
      channel.stderr.write(begin.stderr);
      channel.write(begin.stdout);
      // A channel that nobody reads is never closed.
      channel.resume().exit(127);
      channel.end();
      return;
    }
    const gone = new AbortController();
    channel.on("error", () => gone.abort()).on("close", () => gone.abort());
    const execute = async ({ line, stdin }: RootShellLine): Promise<ExecResult> =>
      this.#execute({ channel, user, command: line, stdin: Promise.resolve(stdin) }, gone.signal);
    await serveRootShell(channel, { token, breaks, execute });
  }

  async #execute(
    { channel, user, command, stdin }: Execution,
    signal: AbortSignal,
  ): Promise<ExecResult> {
    const { begin, end } = marksOf(command);
    channel.stderr.write(begin.stderr);
    channel.write(begin.stdout);
    if (command.includes("e2e-clock")) answerForClock(channel);
    const result = await this.#settings.onExec(
      { machine: this.#execMachine(), user, command, stdin },
      signal,
    );
    return { ...result, stderr: result.stderr + end(result.status) };
  }

  #execMachine(): ExecMachine {
    const { instanceId, hostname, privateAddress } = this.#request;
    const { hostKeyFile } = this.#settings;
    const replaceHostKey = (privateKey: string): string => {
      if (hostKeyFile !== undefined) writeFileSync(hostKeyFile, privateKey, { mode: 0o600 });
      return this.#replaceHostKey(privateKey);
    };
    return {
      instanceId,
      hostname,
      privateAddress,
      publicAddress: this.#settings.publicAddress,
      replaceHostKey,
    };
  }
}

/** Returns the marks that the shell text around each command prints, and around each session of `ssh` without a terminal. */
function marksOf(line: string): {
  readonly begin: { stdout: string; stderr: string };
  readonly end: (status: number) => string;
} {
  const own = /^printf '\\036%s\\n' "(\S+) group/.exec(line)?.[1];
  const token = own ?? /^s=\$\$ && exec sh -c .* sh (e2e-[0-9a-f]{32}) \d+$/s.exec(line)?.[1];
  if (token === undefined) return { begin: { stdout: "", stderr: "" }, end: () => "" };
  const mark = (text: string): string => `\u001e${token} ${text}\n`;
  const begun = mark("begun");
  const group = own === undefined ? "" : mark("group 4242");
  return {
    begin: { stdout: begun, stderr: group + begun },
    end: (status) => mark(`end ${status}`),
  };
}

/** Answers a talk about the clock, which is this computer's, so that nothing sets it; see correct-clock.sh. */
function answerForClock(channel: ServerChannel): void {
  channel.on("data", (chunk: Buffer) => {
    for (const line of chunk.toString().split("\n").slice(0, -1))
      channel.write(line === "ask" ? `${Date.now() / 1000} 0\n` : "set\n");
  });
}

async function readAll(channel: ServerChannel): Promise<Uint8Array> {
  const chunks: Buffer[] = [];
  channel.on("data", (chunk: Buffer) => chunks.push(chunk));
  await new Promise<void>((resolve) => {
    channel.on("end", resolve);
    channel.on("close", resolve);
  });
  return Buffer.concat(chunks);
}
