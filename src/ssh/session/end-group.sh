#!/bin/sh
# Ends a process group: sends TERM, and KILL two seconds later. Runs as the group's user; prints nothing. Its argument
# is the group's id.

kill -TERM -"$1"
(
  sleep 2
  kill -KILL -"$1"
) </dev/null >/dev/null 2>&1 &
