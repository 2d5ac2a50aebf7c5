#!/bin/sh
# Copies what is in a node's volumes into a volume of the snapshot. Runs as root with -e in a helper container. Prints
# the size in kilobytes, or "empty". Arguments: the volumes' paths in the node.
# Values: SOURCE, below which the volumes are; TARGET, the snapshot's volume.

cd "$SOURCE" || exit
for path; do [ -z "$(ls -A ".$path")" ] || cp -a --parents ".$path" "$TARGET"; done
if [ -z "$(ls -A "$TARGET")" ]; then echo empty; else du -sk "$TARGET" | cut -f1; fi
