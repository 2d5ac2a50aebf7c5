#!/bin/sh
# Ends process groups: sends TERM, and KILL two seconds later. Runs as the groups' user; prints nothing. Its argument is
# the id of a group, or a pattern for a session's token as a whole argument: then it ends all processes of that session
# and what they started in their process groups. A bracket in the pattern keeps the search from finding itself. A
# process chooses its own name, which may contain spaces and brackets, so the fields are counted from behind the name.

groups=$1
case $1 in
  *[!0-9]*)
    # shellcheck disable=SC2013 # paths without spaces
    groups=$(
      for p in $(grep -lsxz -- "$1" /proc/[0-9]*/cmdline); do
        sed 's/.*) //' "${p%/cmdline}/stat" | cut -d ' ' -f 3
      done 2>/dev/null | grep -x '[1-9][0-9][0-9]*' | sort -u
    )
    ;;
esac
for g in $groups; do kill -TERM -"$g"; done
(
  sleep 2
  for g in $groups; do kill -KILL -"$g"; done
) >/dev/null 2>&1 </dev/null &
