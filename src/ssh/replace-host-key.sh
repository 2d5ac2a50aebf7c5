#!/bin/sh
# Makes a node generate a host key of its own, in one command with a question in the middle. Runs as root, in the
# shells of old distributions. It makes the key, prints its public half and reads one line; only "switch" makes sshd
# use the key. If the asking side dies, the line never comes and nothing changes. The new key also stays under its
# first name, so that a second run, no matter how the first one ended, prints the same key and switches to it again.
# Arguments: the folder of the host keys, and a shell line that makes sshd read them again.

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
