#!/bin/sh
# Checks the artifact's checksum and prints its version. Runs as root on the first master. Its argument is the
# expected SHA-256, or empty. If the file has another one, prints that and exits with WRONG_SUM.
# Values: FOLDER, where the artifact is; WRONG_SUM.

set -eu
umask 077
cd "$FOLDER"
if [ -n "$1" ]; then
  found=$(sha256sum artifact.sh | cut -d ' ' -f 1)
  [ "$found" = "$1" ] || {
    echo "$found"
    exit "$WRONG_SUM"
  }
fi
exec bash artifact.sh --version </dev/null
