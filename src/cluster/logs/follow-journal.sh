#!/bin/sh
# Prints a node's journal, and goes on with what is added to it until its stdin ends, because the computer that reads it
# may be gone. Runs as root on a node.
# Values: LINES of the past at most; AGO, not empty to begin with the lines of the last AGO seconds, or FROM, not empty
# to begin with those at that time, in seconds since 1970.

form=short-iso-precise
journalctl -q -n 0 -o "$form" >/dev/null 2>&1 || form=short-iso
since=
[ -z "$AGO" ] || since=--since=@$(($(date +%s) - AGO))
[ -z "$FROM" ] || since=--since=@$FROM
exec 3<&0
journalctl --no-pager -q -f -n "$LINES" -o "$form" ${since:+"$since"} 3<&- &
child=$!
{
  cat <&3 >/dev/null
  kill "$child"
} 2>/dev/null &
wait "$child"
