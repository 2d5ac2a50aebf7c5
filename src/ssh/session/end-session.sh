#!/bin/sh
# Ends all processes of a session and what they started in their process groups: sends TERM, and KILL two seconds
# later. Runs as the session's user; prints nothing. Its argument is a pattern for the session's token as a whole
# argument, with a bracket that keeps the search from finding itself. A process chooses its own name, which may
# contain spaces and brackets, so the fields are counted from behind the name.

# shellcheck disable=SC2013 # paths without spaces
groups=$(
  for p in $(grep -lsxz -- "$1" /proc/[0-9]*/cmdline); do
    sed 's/.*) //' "${p%/cmdline}/stat" | cut -d ' ' -f 3
  done 2>/dev/null | grep -x '[1-9][0-9][0-9]*' | sort -u
)
for g in $groups; do kill -TERM -"$g"; done
(
  sleep 2
  for g in $groups; do kill -KILL -"$g"; done
) >/dev/null 2>&1 </dev/null &
