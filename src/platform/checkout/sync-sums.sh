#!/bin/sh
# shellcheck disable=SC2154 # sync-trees.sh sets tests and library
# Prints "# <tree>" and lines of sha256sum for both trees. Runs as root on a master, behind sync-trees.sh. Stdin:
# the files' paths, which each end with a NUL, those of the tests first. A file that is gone meanwhile has no line.
# Values: TESTS_BYTES, the length of the tests' paths.

find_trees
sums() {
  if cd "$1"; then xargs -0 -r sha256sum -- 2>/dev/null || :; fi
}
echo '# tests'
head -c "$TESTS_BYTES" | sums "$tests"
echo '# library'
[ -z "$library" ] || sums "$library"
