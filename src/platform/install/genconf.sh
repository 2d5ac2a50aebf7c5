#!/bin/sh
# Runs the artifact to generate what the nodes install from, or are upgraded from. Runs as root on the first master.
# Prints which of its arguments, names of scripts, were generated, and the rest of the last line of output that begins
# with LINE_PREFIX; after a failure, the end of the artifact's output. Exits with DISK_FULL if that was the cause.
# Values: FOLDER, where the artifact is; COMMAND, its file and its words; LINE_PREFIX, which may be empty; DISK_FULL;
# LEAST_KILOBYTES, below which a disk counts as full; MOST_BYTES of output.

set -eu
umask 077
cd "$FOLDER"
# While SELinux is enforcing, a container may read only files labelled for containers.
if command -v selinuxenabled >/dev/null && selinuxenabled && command -v docker >/dev/null; then
  chcon -R -t container_file_t . 2>/dev/null || chcon -R -t svirt_sandbox_file_t . || :
fi
is_full() { [ "$(df -Pk . | sed -n '2s/.* \([0-9][0-9]*\)  *[0-9]*% .*/\1/p')" -lt "$LEAST_KILOBYTES" ]; }
# shellcheck disable=SC2086 # one word each
bash $COMMAND </dev/null >genconf.log 2>&1 || {
  status=$?
  tail -c "$MOST_BYTES" genconf.log
  # A full disk takes the artifact's words too.
  if is_full || grep -qi 'no space left on device' genconf.log; then exit "$DISK_FULL"; fi
  exit "$status"
}
for name in "$@"; do
  [ ! -e "genconf/serve/$name" ] || echo "$name"
done
[ -z "$LINE_PREFIX" ] || sed -n "s|^$LINE_PREFIX||p" genconf.log | tail -n 1
