#!/bin/sh
# Copies the folder genconf/ of the installation, except what it serves and its configuration, to that of an upgrade.
# Runs as root on the first master, behind script-start.sh; prints nothing.
# Values: FROM and TO, the paths of both.

main() {
  rm -rf "$TO"
  mkdir -p "$TO"
  for each in "$FROM"/*; do
    case ${each##*/} in serve | config.yaml) continue ;; esac
    cp -R -p "$each" "$TO/"
  done
}
