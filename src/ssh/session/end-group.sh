#!/bin/sh
# Ends process groups, and those of what their processes have started, as su does in a session of its own: sends TERM,
# and KILL two seconds later. Runs as the groups' user, behind process-tree.sh; prints nothing. Its argument is the id of
# a group, or a pattern for a session's token as a whole argument: then it ends all processes of that session. A bracket
# in the pattern keeps the search from finding itself.

case $1 in
  *[!0-9]*) tree=$(process_tree "$(grep -lsxz -- "$1" /proc/[0-9]*/cmdline | sed 's/[^0-9]//g' | tr '\n' ' ')" 0) ;;
  *) tree=$(process_tree '' "$1") ;;
esac
groups=$(printf '%s\n' "$tree" | awk -v self=$$ '$1 == self { own = $2 } { all[$2] = 1 } END { for (g in all) if (g != own) print g }')
for g in $groups; do kill -TERM -"$g"; done
(
  sleep 2
  for g in $groups; do kill -KILL -"$g"; done
) >/dev/null 2>&1 </dev/null &
