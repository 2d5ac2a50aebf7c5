#!/bin/sh
# Prints a node's journal, and goes on with what is added to it until its stdin ends, because the computer that reads it
# may be gone. Runs as root on a node. To stderr it prints lines "cursor ID": where the journal ends at the beginning,
# unless it goes on from a cursor, and then every 20 seconds.
# Values: LINES of the past at most; AGO, not empty to begin with the lines of the last AGO seconds; or CURSOR, not empty
# to begin behind it.

form=short-iso-precise
journalctl -q -n 0 -o "$form" >/dev/null 2>&1 || form=short-iso
cursor_now() { journalctl --no-pager -q -n 1 -o export 2>/dev/null | sed -n -e 's/^__CURSOR=/cursor /p' -e 1q >&2; }
exec 3<&0
if [ -n "$CURSOR" ]; then
  journalctl --no-pager -q -f -o "$form" --no-tail "--after-cursor=$CURSOR" 3<&- &
else
  cursor_now
  since=
  [ -z "$AGO" ] || since=--since=@$(($(date +%s) - AGO))
  journalctl --no-pager -q -f -n "$LINES" -o "$form" ${since:+"$since"} 3<&- &
fi
child=$!
while sleep 20 >/dev/null 2>&1; do cursor_now; done 3<&- &
loop=$!
{
  cat <&3 >/dev/null
  kill "$child"
} 2>/dev/null &
wait "$child"
status=$?
kill "$loop"
exit "$status"
