#!/bin/sh
# Ends process groups, and those of what their processes have started, as su does in a session of its own: sends TERM,
# and KILL two seconds later. Runs as the groups' user; prints nothing. Its argument is the id of a group, or a pattern
# for a session's token as a whole argument: then it ends all processes of that session. A bracket in the pattern keeps
# the search from finding itself.

# Lines "process parent group". A process chooses its own name, which may contain spaces, brackets and line breaks, so
# the fields are counted from behind the last bracket of a file.
processes() {
  grep -H '' /proc/[0-9]*/stat 2>/dev/null | awk '
    { process = $0; sub(/^\/proc\//, "", process); sub(/\/.*/, "", process); last[process] = $0 }
    END {
      for (process in last) {
        sub(/^.*\) /, "", last[process])
        split(last[process], fields, " ")
        print process, fields[2], fields[3]
      }
    }'
}

# The groups of the processes in $1, or of the group $2, and of their descendants, one a line.
groups_of() {
  processes | awk -v self=$$ -v given="$1" -v group="$2" '
    BEGIN { for (i = split(given, ids, " "); i > 0; i--) chosen[ids[i]] = 1 }
    { parent[$1] = $2; groups[$1] = $3 }
    END {
      for (process in groups) if (groups[process] == group) chosen[process] = 1
      do {
        more = 0
        for (process in parent) if (!(process in chosen) && parent[process] in chosen) more = chosen[process] = 1
      } while (more)
      for (process in chosen) if (groups[process] > 0 && groups[process] != groups[self]) print groups[process]
      if (group > 0) print group
    }' | sort -u
}

case $1 in
  *[!0-9]*)
    found=$(grep -lsxz -- "$1" /proc/[0-9]*/cmdline | sed 's/[^0-9]//g' | tr '\n' ' ')
    groups=$(groups_of "$found" 0)
    ;;
  *) groups=$(groups_of '' "$1") ;;
esac
for g in $groups; do kill -TERM -"$g"; done
(
  sleep 2
  for g in $groups; do kill -KILL -"$g"; done
) >/dev/null 2>&1 </dev/null &
