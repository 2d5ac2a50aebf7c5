import type { Socket } from "node:net";
import { ClusterError } from "../../../errors.ts";
import type { NodeRecord } from "../../../model/cluster-record.ts";
import { openConnection } from "../../../ssh/connection/open-connection.ts";
import { commandLimitMs, targetOf } from "../../../ssh/connection/connection.ts";
import { type HostKeyLocation, systemHostKeyLocation } from "../../../ssh/first-contact.ts";
import { correctClock } from "../../../ssh/correct-clock.ts";
import { type KeyPair, parseKey } from "../../../ssh/keys.ts";
import { shellText } from "../../../ssh/shell-text.ts";
import { retry } from "../../../system/retry.ts";
import type { Work } from "../../../system/runtime.ts";
import { sshUser } from "../records.ts";
import { reseed } from "../../../ssh/reseed.ts";
import replaceKeysFile from "./replace-keys.sh" with { type: "text" };
import restartSshdFile from "./restart-sshd.sh" with { type: "text" };
import { outsideReason } from "../../../system/printable.ts";
import { waits } from "../../../system/waits.ts";

/** Where a node keeps the keys that open it, and those that it presents. */
export interface KeyLocation extends HostKeyLocation {
  /** The login user's own file. */
  readonly authorizedKeys: string;
  /** A shell pattern for the files of other users. */
  readonly otherAuthorizedKeys: string;
}

/**
 * A shell script that ends when sshd presents the new host key. A reload by systemd ends earlier;
 * first contact, which comes at once, would still find the saved cluster's key. Sessions outlive
 * it.
 */
export const restartSshd = (pidFile: string): string =>
  shellText(restartSshdFile, { PID_FILE: pidFile });

export const systemKeyLocation: KeyLocation = {
  ...systemHostKeyLocation,
  reload: restartSshd("/run/sshd.pid"),
  authorizedKeys: `/home/${sshUser}/.ssh/authorized_keys`,
  otherAuthorizedKeys: "/root/.ssh/authorized_keys* /home/*/.ssh/authorized_keys*",
};

export interface KeyReplacement {
  /** The node, at its own new address. */
  readonly node: NodeRecord;
  /** The keys that the saved machine knows. */
  readonly old: { readonly privateKey: string; readonly hostKey: Buffer };
  /** An `authorized_keys` line. */
  readonly publicKey: string;
  /** The host key that it keeps from now on. */
  readonly hostKey: KeyPair;
  readonly location: KeyLocation;
  /** Opens a connection to its port 22; absent: by the node's address. */
  readonly connect?: (signal: AbortSignal) => Promise<Socket>;
  /**
   * Whether it continues from memory: its clock stands where it was when the machine was saved, and
   * it repeats random numbers.
   */
  readonly continues: boolean;
  /** A script; empty: no machine has a deadline. */
  readonly setDeadline: string;
  /** Clock time after which no further try begins. */
  readonly deadlineMs: number;
}

/**
 * Logs in to a machine that continues from another cluster's snapshot, and replaces every key of
 * that cluster. Afterwards the machine is like a new one before first contact: it accepts only the
 * new cluster's key, and presents a host key that nobody else can know.
 */
export async function replaceKeys(work: Work, replacement: KeyReplacement): Promise<void> {
  const { clock, progress } = work;
  const { node, old } = replacement;
  const target = {
    ...targetOf(node),
    privateKey: old.privateKey,
    hostKeys: [old.hostKey],
    ...limits,
  };
  const oldKey = await publicPart(old.privateKey);
  const attempt = async (inner: AbortSignal): Promise<void> => {
    const { location, connect, continues } = replacement;
    const reached = { ...target, clock, progress, connect };
    await using connection = await openConnection(reached, inner);
    if (continues) {
      await reseed(connection, target.name, inner);
      await correctClock({ ...work, signal: inner }, connection, target.name);
    }
    const { folder, reload, authorizedKeys, otherAuthorizedKeys } = location;
    const words = [
      folder,
      reload,
      authorizedKeys,
      otherAuthorizedKeys,
      oldKey,
      replacement.setDeadline,
    ];
    const { status, stderr } = await connection.run(
      {
        argv: ["sh", "-c", shellText(replaceKeysFile), "e2e-replace-keys", ...words],
        sudo: true,
        stdin: stdinOf(replacement),
        limitMs: commandLimitMs,
        task: "replacing its keys",
        isOutputHidden: true,
      },
      inner,
    );
    if (status === 0) return;
    const reason = outsideReason(stderr);
    throw new ClusterError(
      "remote-command-failed",
      `The keys of ${target.name} cannot be replaced: ${reason}.`,
      {
        hint: "The disk that was saved may be full, or its system may lack a program. Make another snapshot, or create the cluster from an artifact.",
        facts: { node: target.name, status },
      },
    );
  };
  await retry(
    attempt,
    { ...waits.keyReplacement, clock, deadlineMs: replacement.deadlineMs },
    work.signal,
  );
}

const limits = {
  connectTimeoutMs: 3_000,
  keepaliveMs: 10_000,
  authenticationMayComeLater: false,
};

/** Keys are secrets, so they don't appear in an argument list. */
export function stdinOf({
  publicKey,
  hostKey,
}: Pick<KeyReplacement, "publicKey" | "hostKey">): string {
  const lines = [publicKey, hostKey.publicKey, hostKey.privateKey.trim(), "end"];
  return `${lines.join("\n")}\n`;
}

/** The base64 part of the public half, by which a line of `authorized_keys` is recognized. */
async function publicPart(privateKey: string): Promise<string> {
  const key = await parseKey(privateKey);
  if (key instanceof Error) throw key;
  return key.getPublicSSH().toString("base64");
}
