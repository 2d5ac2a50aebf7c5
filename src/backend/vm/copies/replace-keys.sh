#!/bin/sh
# Replaces every key of a machine that continues from a snapshot. Runs as root; prints nothing. The machine doesn't make
# the key by which it will be known, because machines that continue from the same memory may make the same random
# numbers. It starts few programs: on a translated machine that has just continued, each takes a tenth of a second.
# Nobody else can log in meanwhile, and in the end no other session is left: those that were saved, or began otherwise.
# Stdin: the line of the new login key, and the public half of the new host key; the lines of its private half; and
# "end".
# Arguments: the folder of the host keys; a script that makes sshd read them again, and ends this one; the login user's
# authorized_keys; a pattern for those of others; the old key; a script that sets the machine's own deadline.

set -e
umask 077
folder=$1 reload=$2 authorized=$3 others=$4 old=$5 deadline=$6
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
for file in $others; do
  { [ "$file" != "$authorized" ] && [ -f "$file" ] && grep -qF -- "$old" "$file"; } || continue
  left=$(grep -vF -- "$old" "$file" || :)
  printf '%s\n' "$left" >"$file"
done
printf '%s\n' "$login" >"$authorized"

# sshd's own process, from which this session descends, and the processes of the session.
parent_of() {
  parent=0
  while read -r key value; do
    [ "$key" != PPid: ] || parent=$value
  done <"/proc/$1/status"
}
is_sshd() { read -r name <"/proc/$1/comm" && case $name in sshd | sshd-*) ;; *) false ;; esac; }
server=0 own=' ' each=$$
while [ "$each" -gt 1 ]; do
  if is_sshd "$each"; then server=$each; elif [ "$server" != 0 ]; then break; fi
  own="$own$each "
  parent_of "$each"
  each=$parent
done
is_of_server() {
  up=$1
  while is_sshd "$up"; do
    [ "$up" != "$server" ] || return 0
    parent_of "$up"
    up=$parent
  done
  # A part of a session that has lost its parent has a title.
  [ "$up" = 1 ] && case $(tr '\0' ' ' <"/proc/$1/cmdline") in sshd*@* | sshd*"[priv]"*) ;; *) false ;; esac
}
# What sessions have started runs on.
for each in /proc/[0-9]*; do
  each=${each#/proc/}
  case $own in *" $each "*) continue ;; esac
  ! { is_sshd "$each" && is_of_server "$each"; } || kill -KILL "$each" || :
done 2>/dev/null

host=$folder/ssh_host_ed25519_key
rm -f -- "$folder"/ssh_host_*_key "$folder"/ssh_host_*_key.pub "$folder"/e2e_host_key*
printf %s "$private" >"$host"
umask 022
printf '%s\n' "$public" >"$host.pub"
if command -v restorecon >/dev/null; then restorecon "$host" "$host.pub" || :; fi
eval "$reload"
