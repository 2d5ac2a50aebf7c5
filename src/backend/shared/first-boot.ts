import { ClusterError } from "../../errors.ts";
import { nodeReference } from "../../model/cluster-record.ts";
import { type KeyPair, generateKeyPair } from "../../ssh/keys.ts";
import { shellText } from "../../ssh/shell-text.ts";
import { outsideLine, outsideLines, plainLines } from "../../system/printable.ts";
import { watchdog } from "../../system/time-limit.ts";
import type { NodeName, NodeShell } from "../contract.ts";
import addHosts from "./add-hosts.sh" with { type: "text" };
import firstBootFile from "./first-boot.sh" with { type: "text" };
import deadlineFile from "./deadline.sh" with { type: "text" };
import setDeadline from "./set-deadline.sh" with { type: "text" };

/** Without a new line in the logs of cloud-init, which also waits for the network and for packages. */
export const usualFirstBootLimitMs = 10 * 60_000;
const exitStatus = { well: 0, complained: 3, deadlineMissing: 4 } as const;

export const firstBootScript = shellText(firstBootFile, {
  DEADLINE_MISSING: exitStatus.deadlineMissing,
  COMPLAINED: exitStatus.complained,
});

/**
 * Waits for the end of the first boot. Resolves with cloud-init's harmless complaints, if any.
 * Throws `machine-failed` with the end of the log if the machine isn't set up correctly, and
 * `deadline-passed` with its last line if nothing new has come for `limitMs`.
 */
export async function awaitFirstBoot(
  shell: NodeShell,
  machine: { readonly name: string; readonly hasDeadline: boolean; readonly limitMs: number },
  signal: AbortSignal,
): Promise<string | undefined> {
  const argv = [
    "sh",
    "-c",
    firstBootScript,
    "e2e-first-boot",
    machine.hasDeadline ? deadlineUnit : "",
    "/run/cloud-init",
  ];
  const last = { line: "" };
  const onOutput = (_: unknown, chunk: string): void => {
    last.line = outsideLine(chunk.trimEnd().split("\n").at(-1) ?? "") || last.line;
    quiet.feed();
  };
  using quiet = watchdog(machine.limitMs, signal);
  const result = await shell
    .run({ argv, sudo: true, onOutput }, quiet.signal)
    .catch((error: unknown) => {
      throw quiet.hasExpired() ? silent(machine, last.line) : error;
    });
  const lines = outsideLines(result.stdout.trim() === "" ? result.stderr : result.stdout, 40).map(
    (line) => `  ${line}`,
  );
  switch (result.status) {
    case exitStatus.well:
      return undefined;
    case exitStatus.complained:
      return plainLines(result.stdout, 40).join("\n");
    default:
      throw new ClusterError(
        "machine-failed",
        [`${machine.name}: the first boot failed.`, ...lines].join("\n"),
        {
          hint: "Choose another distribution or image; the console output in the saved logs may show the cause.",
          facts: { node: machine.name, status: result.status },
        },
      );
  }
}

const silent = (
  { name, limitMs }: { readonly name: string; readonly limitMs: number },
  line: string,
): ClusterError =>
  new ClusterError(
    "deadline-passed",
    `${name}: the first boot has logged nothing new for ${limitMs / 60_000} minutes. Last seen: ${line || "nothing"}`,
    {
      hint: "Choose another distribution or image; the console output in the saved logs may show the cause.",
      facts: { node: name },
    },
  );

/** The settings for a new machine's first boot, for backends whose machines read cloud-init user data. */
export interface FirstBoot {
  /** The image's own login user, or another user for cloud-init to create. */
  readonly user: string;
  /** An `authorized_keys` line; undefined: nobody can log in. */
  readonly publicKey: string | undefined;
  /**
   * Used for the first connection only, because any process can read user data. OpenSSH's format,
   * ed25519. Undefined: the machine generates one, or gets one in another way.
   */
  readonly hostKey: KeyPair | undefined;
  /** When the machine powers itself off; undefined if it never does. */
  readonly deadline: Date | undefined;
  /** The names under which machines find each other where no name server knows them. */
  readonly hosts?: readonly { readonly address: string; readonly name: string }[];
  /**
   * Keeps the login user's systemd instance running, because translated machines take seconds to
   * start it at each login.
   */
  readonly lingers?: boolean;
  /** Scripts to run as root at every boot. */
  readonly scripts?: readonly string[];
}

/**
 * Returns user data for cloud-init 0.7.9 (CentOS 7) and later: the login key, the first host key,
 * passwordless sudo and the deadline. It is JSON behind cloud-init's first line, because every JSON
 * text is also YAML and leaves nothing open to misinterpretation.
 */
export function userData(boot: FirstBoot): string {
  const scripts = [
    ...(boot.scripts ?? []),
    ...(boot.hosts === undefined || boot.hosts.length === 0 ? [] : [hostsSetup(boot.hosts)]),
    ...(boot.lingers === true ? [lingerSetup(boot.user)] : []),
    ...(boot.deadline === undefined ? [] : [deadlineSetup(boot.deadline)]),
  ];
  const configuration = {
    // Without this, cloud-init reports an error on images that lack the locale it wants to set.
    locale: false,
    ssh_deletekeys: true,
    ...(boot.hostKey === undefined
      ? { ssh_genkeytypes: ["ed25519"] }
      : {
          ssh_keys: {
            ed25519_private: boot.hostKey.privateKey,
            ed25519_public: boot.hostKey.publicKey,
          },
        }),
    users: [
      "default",
      {
        name: boot.user,
        shell: "/bin/bash",
        lock_passwd: true,
        sudo: ["ALL=(ALL) NOPASSWD:ALL"],
        ...(boot.publicKey !== undefined && {
          ssh_authorized_keys: [withoutComment(boot.publicKey)],
        }),
      },
    ],
    // Some images rewrite that file at every boot.
    ...(boot.hosts !== undefined && { manage_etc_hosts: false }),
    ...(scripts.length > 0 && { bootcmd: scripts.map((script) => ["sh", "-c", script]) }),
  };
  return `#cloud-config\n${JSON.stringify(configuration, undefined, 1)}\n`;
}

/** The comment of a key is free text and isn't needed here. */
export function withoutComment(publicKey: string): string {
  return publicKey.split(/\s+/).slice(0, 2).join(" ");
}

export function hostsSetup(hosts: NonNullable<FirstBoot["hosts"]>): string {
  return shellText(addHosts, {
    HOSTS: hosts.map(({ address, name }) => `${address} ${name}`).join("\n"),
  });
}

/** Does what `loginctl enable-linger` does, but before the user exists. */
const lingerSetup = (user: string): string =>
  `mkdir -p /var/lib/systemd/linger && : >/var/lib/systemd/linger/${user}`;

/** The host keys with which machines boot. Containers keep theirs; other machines get a new one at the first login. */
export interface FirstHostKeys {
  /** Returns the same pair for the same node every time. */
  of(node: NodeName): KeyPair;
}

/** No node can impersonate another, because it never sees the other's first key. */
export const hostKeyPerNode = (): FirstHostKeys => keysByName(nodeReference);

/** For machines that share their user data with the others of their role. */
export const hostKeyPerRole = (): FirstHostKeys => keysByName(({ role }) => role);

function keysByName(nameOf: (node: NodeName) => string): FirstHostKeys {
  const pairs = new Map<string, KeyPair>();
  return {
    of: (node) => {
      const name = nameOf(node);
      const pair = pairs.get(name) ?? generateKeyPair("");
      pairs.set(name, pair);
      return pair;
    },
  };
}

const deadlineUnit = "cluster-e2e-deadline.service";

/**
 * Returns the files that set a machine's deadline, for machines that get files before they boot. A
 * drop-in enables the unit, because the archives can't hold the link that systemd would use.
 * Without a deadline, it disables the unit that a copy has inherited.
 */
export const deadlineFiles = (deadline: Date | undefined) => [
  ...(deadline === undefined
    ? []
    : [
        { name: scriptPath.slice(1), mode: 0o755, text: scriptText },
        { name: `etc/systemd/system/${deadlineUnit}`, mode: 0o644, text: unitText(deadline) },
      ]),
  { name: "etc/systemd/system/sysinit.target.d/", mode: 0o755, text: "" },
  {
    name: "etc/systemd/system/sysinit.target.d/cluster-e2e-deadline.conf",
    mode: 0o644,
    text: deadline === undefined ? "[Unit]\n" : `[Unit]\nWants=${deadlineUnit}\n`,
  },
];

/**
 * Returns the script that gives a machine this deadline. Without a deadline, it removes the one
 * that a copy has inherited.
 */
export const deadlineSetup = (deadline: Date | undefined): string =>
  shellText(setDeadline, {
    SCRIPT: scriptPath,
    SCRIPT_TEXT: scriptText,
    UNIT: deadlineUnit,
    UNIT_TEXT: deadline === undefined ? "" : unitText(deadline),
  });

const scriptPath = "/usr/local/sbin/cluster-e2e-deadline";
const scriptText = `#!/bin/sh\n${shellText(deadlineFile)}`;

/**
 * The deadline is an absolute second, so that a reboot doesn't prolong the machine's life.
 * `DefaultDependencies=no` keeps the first attempt at power-off from ending the loop itself.
 * Neither `systemctl stop` nor another target ends the unit, and systemd starts it again however
 * often it is killed. `StartLimitInterval` stands where systemd 219 reads it; later versions still
 * do.
 */
const unitText = (deadline: Date): string => `[Unit]
Description=End of this test machine
DefaultDependencies=no
RefuseManualStop=yes
IgnoreOnIsolate=yes
[Service]
StartLimitInterval=0
ExecStart=/bin/sh ${scriptPath} ${Math.floor(deadline.getTime() / 1000)}
Restart=always
[Install]
WantedBy=sysinit.target
`;
