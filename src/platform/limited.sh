#!/bin/sh
# Defines limited for other scripts: runs a program for at most so many seconds, without input. $1: the seconds, then the
# program and its arguments. Returns the program's status; 124 or 137 if the limit has ended it.
# Value: RUN_LIMITED, run-limited.sh.

# In the foreground, timeout leaves it to that script to end what the program has started.
limited() {
  limit=$1
  shift
  timeout --foreground -k 10 "$limit" sh -c "$RUN_LIMITED" e2e-limited "$@" </dev/null
}
