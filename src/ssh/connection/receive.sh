#!/bin/sh
# Writes stdin to a file. Runs as the login user or as root, in the shells of old distributions too. Prints a line on
# stderr if the size is wrong.
# Arguments: the path, the mode, the size in bytes, a random string. The traps are set before the file exists, so that
# an end at any moment removes it. Both traps remove it, because in dash a signal's trap can cut short the exit trap.

set -eC
folder=$(dirname -- "$1")
[ -d "$folder" ] || (umask 022 && mkdir -p -- "$folder")
umask 077
part=$folder/.e2e-part-$4
trap 'rm -f -- "$part"' EXIT
trap 'rm -f -- "$part"; exit 1' HUP INT TERM
trap '' PIPE
cat >"$part"
size=$(wc -c <"$part")
[ "$size" -eq "$3" ] || {
  echo "$size of $3 bytes arrived" >&2
  exit 1
}
chmod "$2" "$part"
mv -fT -- "$part" "$1"
