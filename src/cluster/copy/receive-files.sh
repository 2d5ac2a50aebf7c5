#!/bin/sh
# Unpacks a tar archive from stdin into a folder, which is created if it is missing. Runs as root. Existing files are
# replaced; the other files of existing folders stay. Nothing is changed unless the whole archive arrives. Prints a line
# on stderr if a file and a folder have the same path.
# Argument: the folder.

set -e
umask 022
mkdir -p -- "$1"
stage=$(mktemp -d -- "$1/.e2e-copy-XXXXXXXX")
trap 'rm -rf -- "$stage"' EXIT
trap 'rm -rf -- "$stage"; exit 1' HUP INT TERM
unset TAR_OPTIONS
tar --extract --preserve-permissions --no-same-owner --file=- --directory="$stage"
cd -- "$stage"
# Folders that exist keep their owner and mode, which cp would take from here.
find . -mindepth 1 -type d -exec sh -c '
  for each; do
    [ ! -d "../$each" ] || { chown --reference="../$each" -- "$each" && chmod --reference="../$each" -- "$each"; } || exit
  done' sh {} +
# Hard links need no space, but some file systems have none.
for each in * .[!.]* ..?*; do
  [ -e "$each" ] || continue
  cp -al --remove-destination -- "$each" .. 2>/dev/null || cp -a --remove-destination -- "$each" ..
done
