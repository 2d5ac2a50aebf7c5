#!/bin/sh
# shellcheck disable=SC3045 # dash, bash and busybox have these options of ulimit
# Copies a machine's console from stdin to a file whose size the system limits, because machines write to their console
# without limit, and QEMU has no limit for a file. When the file is full, cat fails; the file then replaces the earlier
# one. Any other failure, such as a full disk, loses only what could not be written. Runs in the background on the user's
# own machine, in the machine's folder; prints nothing.
# Values: CURRENT and EARLIER, the names of the files; BLOCKS and FILE_BYTES, the limit of one.

umask 077
ulimit -c 0
ulimit -f "$BLOCKS"
while exec >>"$CURRENT" && ! cat; do
  [ "$(wc -c <"$CURRENT")" -lt "$FILE_BYTES" ] || mv -f "$CURRENT" "$EARLIER" || exit
done
