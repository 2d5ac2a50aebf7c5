#!/bin/sh
# shellcheck disable=SC2154 # sync-places.sh sets tests and library
# Prints "# <place>" and lines of sha256sum for both places. Runs as root on a master, behind sync-places.sh. Stdin:
# the files' paths, which each end with a NUL, those of the tests first. A file that is gone meanwhile has no line.
# Values: TESTS_BYTES, the length of the tests' paths.

find_places
sums() {
  if cd "$1"; then xargs -0 -r sha256sum -- 2>/dev/null || :; fi
}
echo '# tests'
head -c "$TESTS_BYTES" | sums "$tests"
echo '# library'
[ -z "$library" ] || sums "$library"
