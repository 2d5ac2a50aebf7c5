#!/bin/sh
# Copies files of a node that its engine hides in a container of the snapshot. The engine runs it in the node, as root
# with -e, shortly before it is saved. Prints nothing.
# Values: STATE, where start-system.sh finds them.

cd /etc || exit
rm -rf "$STATE/saved"
mkdir -p "$STATE/saved"
for name in hosts hostname resolv.conf; do
  [ ! -e "$name" ] || cp -a "$name" "$STATE/saved"
done
