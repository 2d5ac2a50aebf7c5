#!/bin/bash
# Holds the lock of a cluster's upgrades for as long as lines arrive on stdin, so that it ends with the connection, and
# also if the computer at its other end is cut off. Runs as root on the first master: bash -c TEXT e2e-upgrade-lock
# OWNER. Prints "held", after an earlier connection of the same owner has ended; if another owner has the lock, prints
# "since TIME" and exits with TAKEN.
# Values: FILE; TAKEN; SILENT_SECONDS, the longest time between two lines.

set -eu
umask 077
mkdir -p "${FILE%/*}"
exec 9>>"$FILE"
own_is_left() { [ "$(cat "$FILE")" = "$1" ]; }
flock -n 9 || { own_is_left "$1" && flock -w "$((2 * SILENT_SECONDS))" 9; } || {
  date -u -r "$FILE" '+since %H:%M:%S UTC'
  exit "$TAKEN"
}
echo "$1" >"$FILE"
echo held
while read -r -t "$SILENT_SECONDS" _; do :; done
