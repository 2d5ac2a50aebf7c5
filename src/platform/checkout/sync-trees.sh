#!/bin/sh
# shellcheck disable=SC2034 # the other scripts use library
# Functions and settings of the scripts that sync a checkout. They run as root on a master, in a POSIX sh, with GNU
# tools; one sync at a time per node.
# Values: NOT_INSTALLED, BROKEN_TRANSFER, FAILED and HALFWAY, exit statuses; for find_trees, TESTS_FOLDER, LIBRARY_FOLDER and
# INTERNAL_LIBRARY, the folders of the node's layout, of which the last two may be empty.

set -eu
umask 022
export LC_ALL=C
fail() {
  printf '%s\n' "$2" >&2
  exit "$1"
}
beside() { printf '%s/.%s.cluster-e2e-%s' "$(dirname "$1")" "$(basename "$1")" "$2"; }
# Undoes a swap that a power failure interrupted.
recover() { [ -e "$1" ] || [ ! -d "$(beside "$1" former)" ] || mv "$(beside "$1" former)" "$1"; }

# Sets tests and library to the real folders; library is empty if there is none.
find_trees() {
  tests=$(readlink -f "$TESTS_FOLDER") || fail "$NOT_INSTALLED" "$TESTS_FOLDER does not exist"
  exec 9<"$(dirname "$tests")"
  flock -w 60 9 || fail "$FAILED" "another sync to this node is running"
  recover "$tests"
  [ -d "$tests" ] || fail "$NOT_INSTALLED" "$tests does not exist"
  library=
  [ -n "$INTERNAL_LIBRARY" ] || return 0
  for python in "$LIBRARY_FOLDER"/*/site-packages; do
    [ -d "$python" ] || continue
    recover "$(readlink -f "$python/$INTERNAL_LIBRARY")"
    [ ! -d "$python/$INTERNAL_LIBRARY" ] || library=$(readlink -f "$python/$INTERNAL_LIBRARY")
  done
}
