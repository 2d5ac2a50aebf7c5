import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { runProgram } from "../../system/processes/run-program.ts";
import { sshEnvironment } from "../ssh-environment.ts";
import type { Environment } from "../../system/runtime.ts";

/**
 * An ssh in the background that stays logged in, for later sessions.
 * https://man.openbsd.org/ssh_config#ControlMaster
 */
export interface MasterConnection {
  /** Where ssh must start: its path to the socket is relative, because a whole path may be too long for a socket. */
  readonly folder: string;
  /** The socket's path, relative to `folder`. */
  readonly path: string;
  /** Arguments for an ssh that uses the master connection. Without one, or if that refuses, ssh logs in by itself. */
  readonly options: readonly string[];
  /** Whether there is a socket. Its process may be dead. */
  hasSocket(): boolean;
  /** Whether the process answers. */
  isAlive(): Promise<boolean>;
  /** Whether the node itself answers within `limitMs`. */
  reaches(
    sshConfigFile: string,
    host: string,
    limitMs: number,
    signal: AbortSignal,
  ): Promise<boolean>;
  /** Logs in again in the background, and returns at once. Failures don't matter. */
  open(sshConfigFile: string, host: string): void;
  /** Ends it, with its sessions. Never throws: a process that doesn't answer is dead, or ends after its idle time. */
  close(): Promise<void>;
}

/** How long the background process outlives its last session. */
const idleSeconds = 600;
/** The session ends at once, so that an ssh which finds that another one has become the master ends as well. */
const persistence = ["-o", "ControlMaster=auto", "-o", `ControlPersist=${idleSeconds}`] as const;
const answerLimitMs = 3_000;
const nameShape = /^master-[0-9a-f]{16}$/;

/**
 * `folder` must belong to this user alone. `circumstances` is everything that a login depends on,
 * such as the pinned host key: after a change, the connection that was opened before is not used.
 */
export function masterConnection(
  folder: string,
  circumstances: readonly string[],
  environment: Environment,
): MasterConnection {
  const name = `master-${createHash("sha256").update(JSON.stringify(circumstances)).digest("hex").slice(0, 16)}`;
  const path = `./${name}`;
  const control = ["-o", `ControlPath=${path}`] as const;
  const options = [...control, "-o", "ControlMaster=no"] as const;
  const env = sshEnvironment(environment);
  return {
    folder,
    path,
    options,
    hasSocket: () => existsSync(join(folder, name)),
    isAlive: () => command(folder, name, "check", environment),
    close: async () => {
      if (existsSync(join(folder, name))) await close(folder, name, environment);
    },
    reaches: async (sshConfigFile, host, limitMs, signal) => {
      const argv = ["ssh", "-F", sshConfigFile, ...options, "-T", host, "true"] as const;
      const limit = AbortSignal.any([signal, AbortSignal.timeout(limitMs)]);
      return await runProgram({ argv, cwd: folder, environment: env }, limit).then(
        ({ status }) => status === 0,
        () => false,
      );
    },
    open: (sshConfigFile, host) => {
      const words = ["-F", sshConfigFile, ...control, ...persistence, "-T", host, "true"];
      // Without our terminal, output and session: Ctrl-C doesn't reach it.
      spawn("ssh", words, { cwd: folder, env: { ...env }, detached: true, stdio: "ignore" })
        .on("error", () => {})
        .unref();
    },
  };
}

export async function closeMasterConnections(
  folder: string,
  environment: Environment,
): Promise<void> {
  await Promise.all(
    (await socketNames(folder)).map(async (name) => close(folder, name, environment)),
  );
}

async function close(folder: string, name: string, environment: Environment): Promise<void> {
  await command(folder, name, "exit", environment);
  await rm(join(folder, name), { force: true }).catch(() => {});
}

/** Whether a folder has a master connection whose process answers. */
export async function hasMasterConnection(
  folder: string,
  environment: Environment,
): Promise<boolean> {
  const names = await socketNames(folder);
  return (
    await Promise.all(names.map((name) => command(folder, name, "check", environment)))
  ).includes(true);
}

async function socketNames(folder: string): Promise<readonly string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  return entries
    .filter((entry) => entry.isSocket() && nameShape.test(entry.name))
    .map(({ name }) => name);
}

/** Sends a command to a master connection. Resolves with whether its process has obeyed. */
async function command(
  folder: string,
  name: string,
  word: "check" | "exit",
  environment: Environment,
): Promise<boolean> {
  // ssh wants a host, but connects to none.
  const argv = [
    "ssh",
    "-F",
    "/dev/null",
    "-o",
    `ControlPath=./${name}`,
    "-O",
    word,
    "master",
  ] as const;
  try {
    const run = { argv, cwd: folder, environment: sshEnvironment(environment) };
    return (await runProgram(run, AbortSignal.timeout(answerLimitMs))).status === 0;
  } catch {
    return false;
  }
}
