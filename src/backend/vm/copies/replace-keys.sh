#!/bin/sh
# Replaces every key of a machine that continues from a snapshot. Runs as root; prints nothing. Machines that continue
# from the same memory also have the same state of their random number generator. So they get other randomness, and
# even then don't make the key by which they will be known: they find it where a first contact that was cut short
# would have left it. Stdin: lines with the time or "-", and in base64 randomness, the line of the new login key, and
# the two host keys with their public halves.
# Arguments: the folder of the host keys; a shell line that makes sshd read them again; the login user's
# authorized_keys; a pattern for those of others; the old key; a script that sets the machine's own deadline.

set -e
umask 077
folder=$1 reload=$2 authorized=$3 others=$4 old=$5 deadline=$6
read -r now
read -r entropy
read -r login
read -r first
read -r first_public
read -r own
read -r own_public
[ "$now" = - ] || date "--set=@$now" >/dev/null
sh -c "$deadline"
decode() { printf %s "$1" | base64 -d; }
decode "$entropy" >/dev/urandom
perl -e 'open my $f, ">", "/dev/urandom" or exit 1; ioctl $f, 0x5207, 0 or exit 1' 2>/dev/null || :
for file in $others; do
  { [ -f "$file" ] && grep -qF -- "$old" "$file"; } || continue
  left=$(grep -vF -- "$old" "$file" || :)
  printf '%s\n' "$left" >"$file"
done
decode "$login" >"$authorized"
put() {
  decode "$1" >"$2.next"
  mv -f -- "$2.next" "$2"
}
put "$own" "$folder/e2e_host_key"
put "$own_public" "$folder/e2e_host_key.pub"
host=$folder/ssh_host_ed25519_key
rm -f -- "$folder"/ssh_host_*_key "$folder"/ssh_host_*_key.pub
put "$first" "$host"
put "$first_public" "$host.pub"
chmod 644 "$host.pub"
if command -v restorecon >/dev/null; then restorecon "$host" "$host.pub" || :; fi
eval "$reload"
