#!/bin/sh
# Replaces every key of a machine that continues from a snapshot. Runs as root; prints nothing. Machines that continue
# from the same memory also have the same state of their random number generator. So they get other randomness, and
# even then don't make the key by which they will be known. It starts few programs: on a translated machine that has
# just continued, each takes a tenth of a second.
# Stdin: lines with randomness in base64, the line of the new login key, and the public half of the new
# host key; the lines of its private half; and "end".
# Arguments: the folder of the host keys; a script that makes sshd read them again, and ends this one; the login user's
# authorized_keys; a pattern for those of others; the old key; a script that sets the machine's own deadline.

set -e
umask 077
folder=$1 reload=$2 authorized=$3 others=$4 old=$5 deadline=$6
read -r entropy
read -r login
read -r public
private=
while read -r line; do
  [ "$line" != end ] || break
  private="$private$line
"
done
[ "$line" = end ]
[ -z "$deadline" ] || sh -c "$deadline"
printf %s "$entropy" | base64 -d >/dev/urandom
perl -e 'open my $f, ">", "/dev/urandom" or exit 1; ioctl $f, 0x5207, 0 or exit 1' 2>/dev/null || :
for file in $others; do
  { [ "$file" != "$authorized" ] && [ -f "$file" ] && grep -qF -- "$old" "$file"; } || continue
  left=$(grep -vF -- "$old" "$file" || :)
  printf '%s\n' "$left" >"$file"
done
printf '%s\n' "$login" >"$authorized"
host=$folder/ssh_host_ed25519_key
rm -f -- "$folder"/ssh_host_*_key "$folder"/ssh_host_*_key.pub "$folder"/e2e_host_key*
printf %s "$private" >"$host"
umask 022
printf '%s\n' "$public" >"$host.pub"
if command -v restorecon >/dev/null; then restorecon "$host" "$host.pub" || :; fi
eval "$reload"
