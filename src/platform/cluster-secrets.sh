#!/bin/sh
# Prints the files that hold the cluster's secrets, with frame.sh. Runs as root on the first master.
# Values: FILES, lines of a name and a path; MOST_BYTES of each file.

while read -r name path; do
  head -c "$MOST_BYTES" "$path" 2>/dev/null | frame "$name"
done <<CLUSTER_E2E_END
$FILES
CLUSTER_E2E_END
exit 0
