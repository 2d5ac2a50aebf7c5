#!/bin/bash
# The artifact of a platform's folder, behind the platform's facts and these values; the compressed files follow it.
# Runs as root on the first master, in a folder with genconf/: bash ARTIFACT --version | --genconf. The first prints
# one line of JSON; the second writes genconf/serve/, or prints a line "KEY: MESSAGE" for each problem.
# Values: SUM, the SHA-256 of the files' archive, and FIRST_LINE, where it begins; VERSION_JSON and PLATFORM_JSON, the
# facts; GENCONF_TEXT, a Python program; INSTALL_TEXT and CHECK_TEXT, scripts for the nodes.

set -euo pipefail
artifact=${BASH_SOURCE[0]}

fail() {
  printf '%s\n' "$*" >&2
  exit 1
}

# /usr/libexec/platform-python: RHEL 8 and later; python2.7: CentOS 7.
find_python() {
  local name
  for name in python3 /usr/libexec/platform-python python2.7 python; do
    if command -v "$name"; then return; fi
  done
  fail 'genconf: there is no Python on this machine'
}

generate() {
  local python archive=genconf/serve/platform.tar.gz
  umask 077
  python=$(find_python)
  export SUM VERSION_JSON PLATFORM_JSON INSTALL_TEXT CHECK_TEXT
  printf '%s' "$GENCONF_TEXT" | "$python" -
  tail -n "+$FIRST_LINE" "$artifact" >"$archive.part"
  # An incomplete download still runs as a script. Only the checksum detects it.
  echo "$SUM  $archive.part" | sha256sum --check --status ||
    fail 'artifact: this file is damaged or incomplete; download it again'
  mv -f "$archive.part" "$archive"
}

case "${1:-}" in
  --version) printf '%s\n' "$VERSION_JSON" ;;
  --genconf) generate ;;
  *)
    echo "usage: bash $artifact --version | --genconf" >&2
    exit 2
    ;;
esac
exit
