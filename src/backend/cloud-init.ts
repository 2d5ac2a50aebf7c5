/** What a new machine must know of itself when it first boots, for backends whose machines read cloud-init user data. */
export interface FirstBoot {
  /** The image's own login user, or another, which is then made. */
  readonly user: string;
  /** An `authorized_keys` line. */
  readonly publicKey: string;
  /** For the very first connection only: any process on the machine can read user data. OpenSSH's format, ed25519. */
  readonly hostKey: { readonly privateKey: string; readonly publicKey: string };
  /** When the machine powers itself off; absent where it lives on. */
  readonly deadline: Date | undefined;
  /** By what names machines find each other, where no name server knows them. */
  readonly hosts?: readonly { readonly address: string; readonly name: string }[];
}

export const deadlineUnit = "cluster-e2e-deadline.service";

/**
 * User data for cloud-init 0.7.9 (CentOS 7) and later: the login key, the first host key, sudo without a password and the deadline.
 * It is JSON behind cloud-init's first line: every JSON text is YAML, and nothing in it can be taken for something else.
 */
export function userData(boot: FirstBoot): string {
  const scripts = [
    ...(boot.hosts === undefined ? [] : [hostsSetup(boot.hosts)]),
    ...(boot.deadline === undefined ? [] : [deadlineSetup(boot.deadline)]),
  ];
  const configuration = {
    // Images without the locale that cloud-init wants to set would be called broken.
    locale: false,
    ssh_deletekeys: true,
    ssh_keys: {
      ed25519_private: boot.hostKey.privateKey,
      ed25519_public: withoutComment(boot.hostKey.publicKey),
    },
    users: [
      "default",
      {
        name: boot.user,
        shell: "/bin/bash",
        lock_passwd: true,
        sudo: ["ALL=(ALL) NOPASSWD:ALL"],
        ssh_authorized_keys: [withoutComment(boot.publicKey)],
      },
    ],
    // Images may write that file at every boot.
    ...(boot.hosts !== undefined && { manage_etc_hosts: false }),
    ...(scripts.length > 0 && { bootcmd: scripts.map((script) => ["sh", "-c", script]) }),
  };
  return `#cloud-config\n${JSON.stringify(configuration, undefined, 1)}\n`;
}

/** A key's comment is free text, and of no use there. */
function withoutComment(publicKey: string): string {
  return publicKey.trim().split(/\s+/).slice(0, 2).join(" ");
}

/** Done at every boot: a line that is there already is not written again. */
function hostsSetup(hosts: NonNullable<FirstBoot["hosts"]>): string {
  const lines = hosts.map(({ address, name }) => `'${address} ${name}'`).join(" ");
  return `for line in ${lines}; do grep -qxF "$line" /etc/hosts || echo "$line" >>/etc/hosts; done`;
}

/**
 * A service that compares the clock with an absolute second, so that a reboot doesn't prolong the machine's life, without anything newer than
 * systemd 219. Set up before SSH, again on every boot. `DefaultDependencies=no`, or the first attempt at power-off would end the loop itself;
 * the force, because a service that ignores TERM holds up a plain power-off.
 */
function deadlineSetup(deadline: Date): string {
  const seconds = Math.floor(deadline.getTime() / 1000);
  const script = "/usr/local/sbin/cluster-e2e-deadline";
  const unit = `/etc/systemd/system/${deadlineUnit}`;
  return `set -eu
mkdir -p /usr/local/sbin
cat >${script} <<'END'
#!/bin/sh
# Powers this test machine off at the second given, whatever runs on it.
while left=$(($1 - $(date +%s))); [ "$left" -gt 0 ]; do
  [ "$left" -lt 10 ] || left=10
  sleep "$left"
done
systemctl --no-block poweroff
sleep 120
systemctl poweroff --force
sleep 60
systemctl poweroff --force --force
END
cat >${unit} <<'END'
[Unit]
Description=End of this test machine
DefaultDependencies=no
[Service]
ExecStart=/bin/sh ${script} ${seconds}
Restart=always
[Install]
WantedBy=sysinit.target
END
chmod 0755 ${script}
systemctl daemon-reload
systemctl enable ${deadlineUnit}
systemctl --no-block start ${deadlineUnit}
`;
}
