#!/bin/sh
# Prints the files that hold the cluster's secrets, with frame.sh. Runs as root on the first master.
# Values: FILES, lines of a name and a path; LISTS, files with lines of further paths, MOST_LISTED of them, which are
# named listed-0 and so on; MOST_BYTES of each file.

while read -r name path; do
  [ -r "$path" ] || continue
  read_file "$path" head -c "$MOST_BYTES" | frame "$name"
done <<CLUSTER_E2E_END
$FILES
CLUSTER_E2E_END
number=0
# shellcheck disable=SC2086 # one word per list
for list in $LISTS; do read_file "$list" cat; done | head -n "$MOST_LISTED" | while read -r path; do
  read_file "$path" head -c "$MOST_BYTES" | frame "listed-$number"
  number=$((number + 1))
done
exit 0
