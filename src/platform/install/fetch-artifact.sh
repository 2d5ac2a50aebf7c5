#!/bin/sh
# Downloads the artifact. Runs as root on the first master; stdin is curl's configuration, since the URL may be a
# secret. Prints lines "size: RECEIVED TOTAL", of which the total may be missing. Exits with NO_CURL if there is no
# curl.
# Values: FOLDER, which it creates; ARTIFACT, the path of the complete file; MOST, the bytes that it may have; NO_CURL.

set -eu
umask 077
command -v curl >/dev/null || exit "$NO_CURL"
mkdir -p "$FOLDER"
cd "$FOLDER"
rm -f artifact.part artifact.headers
# The sleep has no output, so that it doesn't keep the session open.
report() {
  while sleep 1 >/dev/null 2>&1; do
    total=$(sed -n 's/^[Cc]ontent-[Ll]ength: *\([0-9]*\).*/\1/p' artifact.headers 2>/dev/null | tail -n 1)
    echo "size: $(stat -c %s artifact.part 2>/dev/null || echo 0) $total"
  done
}
report &
reporter=$!
status=0
# The disk may be that of the computer that runs the containers. Ignoring the signal makes it an error of curl's.
trap '' XFSZ
ulimit -f "$((MOST / 512))" 2>/dev/null || :
curl --config - --dump-header artifact.headers --output artifact.part || status=$?
kill "$reporter" 2>/dev/null || :
rm -f artifact.headers
if [ "$status" != 0 ]; then
  [ "$(stat -c %s artifact.part 2>/dev/null || echo 0)" -lt "$MOST" ] || echo "the server sends more than $MOST bytes" >&2
  rm -f artifact.part
  exit "$status"
fi
# A partial file never looks complete.
mv -f artifact.part "$ARTIFACT"
