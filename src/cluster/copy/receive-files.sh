#!/bin/sh
# Unpacks a tar archive from stdin into a folder, which is created if it is missing. Runs as root. Existing files are
# replaced; the other files of existing folders stay. Nothing is changed unless the whole archive arrives. Prints why on
# stderr if a file and a folder have the same path, or if no space is left.
# Argument: the folder.

set -e
umask 022
mkdir -p -- "$1"
stage=$(mktemp -d -- "$1/.e2e-copy-XXXXXXXX")
# tar says only how many bytes it has written.
end() {
  [ "$?" -eq 0 ] || [ "$(stat -f -c %a -- "$stage")" != 0 ] || echo "no space is left on its disk" >&2
  rm -rf -- "$stage"
}
trap end EXIT
trap 'rm -rf -- "$stage"; exit 1' HUP INT TERM
unset TAR_OPTIONS
# Others who may change the folder can put a link or a folder of theirs in the place of this one.
cd -P -- "$stage"
# shellcheck disable=SC3067 # dash has -O
if ! [ -O . ] || [ "$(basename -- "$(pwd -P)")" != "${stage##*/}" ]; then
  echo "somebody else changes the folder at the same time" >&2
  exit 1
fi
tar --extract --preserve-permissions --no-same-owner --file=-
# Folders that exist keep their owner and mode, which cp would take from here, and have changed now.
find . -mindepth 1 -type d -exec sh -c '
  for each; do
    [ ! -d "../$each" ] || { chown --reference="../$each" -- "$each" && chmod --reference="../$each" -- "$each" && touch -- "$each"; } || exit
  done' sh {} +
# Hard links need no space, but some file systems have none.
for each in * .[!.]* ..?*; do
  [ -e "$each" ] || continue
  cp -al --remove-destination -- "$each" .. 2>/dev/null || cp -a --remove-destination -- "$each" ..
done
