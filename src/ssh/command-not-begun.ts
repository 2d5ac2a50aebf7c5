import type { ClientChannel } from "ssh2";
import { ClusterError } from "../errors.ts";
import { outside } from "../outside-text.ts";
import { addressOf } from "./connection/connection-errors.ts";
import { eitherSignal } from "./either-signal.ts";
import { openChannel } from "./connection/exec-channel.ts";
import type { Link } from "./connection/link.ts";
import { plainLines } from "../system/printable.ts";

const limitMs = 5_000;
const longestWord = 200;

/**
 * Explains a command whose channel ended, with whatever status, without proof that the command had begun: the login
 * shell isn't a POSIX shell, its start-up files end it, or sshd runs something else in its place.
 */
export async function commandNotBegun(
  link: Link,
  { status, said }: { readonly status: number; readonly said: string },
  signal: AbortSignal,
): Promise<ClusterError> {
  const shell = await loginShell(link, signal);
  const { name, user } = link.target;
  const line = plainLines(said, 1, longestWord)[0] ?? "";
  const words = line === "" ? "printed nothing" : `printed ${outside(JSON.stringify(line))}`;
  const subject = shell === undefined ? "the program that sshd runs" : `the login shell ${outside(shell)}`;
  const message = `${addressOf(link.target)} did not run the command: ${subject} ${words} and exited with status ${status}.`;
  return new ClusterError("remote-command-failed", message, {
    hint: `The login shell of ${user} must be a POSIX shell such as /bin/bash, its start-up files must not end it, and sshd_config must not set ForceCommand for this user. Choose another image, or change this one.`,
    facts: { node: name, status, ...(shell !== undefined && { loginShell: outside(shell) }) },
  });
}

/** Every shell understands this line. Undefined if no shell answers, as with a ForceCommand. */
async function loginShell(link: Link, signal: AbortSignal): Promise<string | undefined> {
  using limit = eitherSignal([signal, AbortSignal.timeout(limitMs)]);
  const read = (channel: ClientChannel): { readonly text: Promise<string> } => ({
    text: new Promise((resolve, reject) => {
      const seen = { text: "" };
      channel.on("data", (chunk: Buffer) => {
        seen.text = (seen.text + chunk.toString()).slice(-longestWord * 10);
      });
      channel.stderr.resume();
      channel.on("error", () => {}).on("close", () => resolve(seen.text));
      const onAbort = (): void => {
        channel.close();
        reject(limit.signal.reason);
      };
      limit.signal.addEventListener("abort", onAbort, { once: true });
      channel.end();
    }),
  });
  try {
    const { text } = await openChannel(link, "echo e2e-login-shell=$SHELL", read, limit.signal);
    return /e2e-login-shell=(\/[\w./+-]+)/.exec(await text)?.[1];
  } catch {
    return undefined;
  }
}
