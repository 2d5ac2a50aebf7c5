/** Where a node's sshd keeps its host keys, and how it is told to read them again. */
export interface HostKeyPlace {
  readonly folder: string;
  /** A shell line, run as root. Open sessions must survive it. */
  readonly reload: string;
}

/** As all supported distributions have it: Debian and Ubuntu call the unit ssh, the others sshd. */
export const systemHostKeyPlace: HostKeyPlace = {
  folder: "/etc/ssh",
  reload: "systemctl reload ssh.service 2>/dev/null || systemctl reload sshd.service",
};

/**
 * Gives the node a host key of its own making, in one command with a question in its middle: it makes the key, prints its public half and reads
 * one line; only on `switch` sshd gets the key. When the asking side dies, the line never comes and nothing is switched. The new key stays under
 * its first name too, so that a second run, whatever became of the first, prints the same key and switches to it again.
 * $1 folder, $2 reload line. Runs under the shells of old distributions.
 */
export const replaceHostKeyScript = `
set -e
umask 077
next=$1/e2e_host_key
host=$1/ssh_host_ed25519_key
if ! [ -s "$next" ] || ! [ -s "$next.pub" ]; then
  rm -f -- "$next" "$next.pub"
  ssh-keygen -q -t ed25519 -N '' -C '' -f "$next" </dev/null
fi
cat "$next.pub"
read -r answer && [ "$answer" = switch ]
for half in "" .pub; do
  cp -f -- "$next$half" "$host$half.next"
  [ -z "$half" ] || chmod 644 "$host$half.next"
  mv -f -- "$host$half.next" "$host$half"
done
for other in "$1"/ssh_host_*_key "$1"/ssh_host_*_key.pub; do
  case $other in "$host" | "$host.pub") ;; *) rm -f -- "$other" ;; esac
done
if command -v restorecon >/dev/null; then restorecon "$host" "$host.pub" || :; fi
eval "$2"
`;
