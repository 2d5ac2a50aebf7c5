#!/bin/sh
# Creates the folders that its arguments name. Runs on a node as root, behind script-start.sh; prints nothing.
# Values: MASK, the umask; OLD, a folder to remove first. Both may be missing.

main() {
  umask "${MASK:-077}"
  [ -z "${OLD:-}" ] || rm -rf "$OLD"
  mkdir -p -- "$@"
}
