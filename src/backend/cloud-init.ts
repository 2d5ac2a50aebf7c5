/** The settings for a new machine's first boot, for backends whose machines read cloud-init user data. */
export interface FirstBoot {
  /** The image's own login user, or another user for cloud-init to create. */
  readonly user: string;
  /** An `authorized_keys` line. */
  readonly publicKey: string;
  /** Used for the very first connection only, because any process on the machine can read user data. OpenSSH's format, ed25519. */
  readonly hostKey: { readonly privateKey: string; readonly publicKey: string };
  /** When the machine powers itself off; undefined if it never does. */
  readonly deadline: Date | undefined;
  /** The names under which machines find each other where no name server knows them. */
  readonly hosts?: readonly { readonly address: string; readonly name: string }[];
  /** Whether the login user's part of systemd stays when nobody is logged in. To start it again at a login takes seconds on a translated machine. */
  readonly lingers?: boolean;
}

export const deadlineUnit = "cluster-e2e-deadline.service";

/**
 * Returns user data for cloud-init 0.7.9 (CentOS 7) and later: the login key, the first host key, passwordless sudo and the deadline. It is JSON
 * behind cloud-init's first line, because every JSON text is also YAML and leaves nothing open to misinterpretation.
 */
export function userData(boot: FirstBoot): string {
  const scripts = [
    ...(boot.hosts === undefined ? [] : [hostsSetup(boot.hosts)]),
    ...(boot.lingers === true ? [lingerSetup(boot.user)] : []),
    ...(boot.deadline === undefined ? [] : [deadlineSetup(boot.deadline)]),
  ];
  const configuration = {
    // Without this, cloud-init reports an error on images that lack the locale it wants to set.
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
    // Some images rewrite that file at every boot.
    ...(boot.hosts !== undefined && { manage_etc_hosts: false }),
    ...(scripts.length > 0 && { bootcmd: scripts.map((script) => ["sh", "-c", script]) }),
  };
  return `#cloud-config\n${JSON.stringify(configuration, undefined, 1)}\n`;
}

/** The comment of a key is free text and isn't needed here. */
function withoutComment(publicKey: string): string {
  return publicKey.trim().split(/\s+/).slice(0, 2).join(" ");
}

/** Runs at every boot, so it doesn't add a line that is already there. */
function hostsSetup(hosts: NonNullable<FirstBoot["hosts"]>): string {
  const lines = hosts.map(({ address, name }) => `'${address} ${name}'`).join(" ");
  return `for line in ${lines}; do grep -qxF "$line" /etc/hosts || echo "$line" >>/etc/hosts; done`;
}

/** As `loginctl enable-linger` does, which needs the user to exist. */
const lingerSetup = (user: string): string => `mkdir -p /var/lib/systemd/linger && : >/var/lib/systemd/linger/${user}`;

/**
 * Sets up a service that compares the clock with an absolute second, so that a reboot doesn't prolong the machine's life. It needs nothing newer than
 * systemd 219. It starts before SSH, at every boot. `DefaultDependencies=no` keeps the first attempt at power-off from ending the loop itself.
 * Power-off is forced because a service that ignores TERM holds up a plain power-off.
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
