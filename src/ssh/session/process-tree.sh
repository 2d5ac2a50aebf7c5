#!/bin/sh
# Defines process_tree: prints lines "process group" of the processes whose ids are in $1, of those in the group $2, and
# of all that they have started, as long as nobody in between has ended. Lines for other scripts; runs as their user. A
# process chooses its own name, which may contain any bytes, also brackets and line breaks, so the fields are counted from
# behind a file's last bracket. Never of init and the kernel's threads, which may have the group 0 or 1.

process_tree() {
  LC_ALL=C grep -aH '' /proc/[0-9]*/stat 2>/dev/null | LC_ALL=C awk -v given="$1" -v group="$2" '
    BEGIN { for (i = split(given, ids, " "); i > 0; i--) chosen[ids[i]] = 1 }
    { process = $0; sub(/^\/proc\//, "", process); sub(/\/.*/, "", process); last[process] = $0 }
    END {
      for (process in last) {
        sub(/^.*\) /, "", last[process])
        split(last[process], fields, " ")
        parent[process] = fields[2]
        groups[process] = fields[3]
        if (group > 0 && fields[3] == group) chosen[process] = 1
      }
      do {
        more = 0
        for (process in parent) if (!(process in chosen) && parent[process] in chosen) more = chosen[process] = 1
      } while (more)
      for (process in chosen) if (groups[process] > 1) print process, groups[process]
    }'
}
