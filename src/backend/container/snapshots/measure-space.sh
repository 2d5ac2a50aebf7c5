#!/bin/sh
# Prints what a snapshot of this node needs to know about the engine's disk: for the node's files and for each volume a
# line with the size and the free space of its file system, then for each volume a line with what its files take, in
# kilobytes. The engine runs it in the node, as root with -e. Arguments: the volumes' paths.

df -Pk / "$@" | awk 'NR > 1 { print $2, $4 }'
for path; do du -skx "$path" 2>/dev/null | cut -f1; done
