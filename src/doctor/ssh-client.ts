import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { Environment } from "../system/environment.ts";
import { type Check, fail, localLimitMs, type Outcome, pass, warn } from "../model/check.ts";

const installation =
  "Install OpenSSH's client (Debian and Ubuntu: openssh-client; Fedora: openssh-clients; macOS has it).";

/** Checks for `ssh` on the PATH. The program's own connections don't need it; `run` uses it. */
export function sshClientCheck(environment: Environment): Check {
  return { name: "ssh", limitMs: localLimitMs, run: (signal) => findClient(environment, signal) };
}

async function findClient(environment: Environment, signal: AbortSignal): Promise<Outcome> {
  const path = Bun.which("ssh", { PATH: environment["PATH"] ?? "" });
  if (path === null) return fail("There is no ssh on the PATH.", installation);
  try {
    // OpenSSH prints its version to stderr.
    const { stdout, stderr } = await promisify(execFile)(path, ["-V"], { env: { ...environment }, signal });
    const version = `${stderr}${stdout}`.trim().split("\n")[0] ?? "";
    return version.startsWith("OpenSSH")
      ? pass(`${version} (${path})`)
      : warn(`${path} is not OpenSSH's: it says "${version.slice(0, 100)}".`, installation);
  } catch (error) {
    signal.throwIfAborted();
    const reason = error instanceof Error ? error.message : String(error);
    return fail(`${path} cannot be run: ${reason.trim().replace(/\.$/, "")}.`, installation);
  }
}
