#!/bin/sh
# Sends a file or folder as a tar archive on stdout. Runs as root. Its argument is the path. A link there is followed;
# links inside a folder are sent as links, and hard links as files. Prints a line on stderr if there is nothing to
# send.

path=$(readlink -e -- "$1") || {
  echo "it does not exist" >&2
  exit 66
}
if [ -d "$path" ]; then
  folder=$path name=.
elif [ -f "$path" ]; then
  folder=$(dirname -- "$path") name=./$(basename -- "$path")
else
  echo "it is neither a file nor a folder" >&2
  exit 66
fi
unset TAR_OPTIONS
export LC_ALL=C
exec tar --create --format=posix --hard-dereference --file=- --directory="$folder" -- "$name"
