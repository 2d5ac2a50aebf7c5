#!/bin/sh
# Defines limited for other scripts: runs a program for at most so many seconds, without input. $1: the seconds, then the
# program and its arguments. Prints the end of what the program prints, and behind it "=" and its status; 124 or 137 if the
# limit has ended it. Processes that it leaves may hold its output open: nobody waits for them.
# Value: RUN_LIMITED, run-limited.sh.

# In the foreground, timeout leaves it to that script to end what the program has started. A mark is behind the program's
# last line, also behind one without a line break. A line that fills the memory which sed may have is an error of its own.
limited() {
  limit=$1
  read -r mark </proc/sys/kernel/random/uuid
  shift
  {
    timeout --foreground -k 10 "$limit" sh -c "$RUN_LIMITED" e2e-limited "$mark" "$@" </dev/null 2>&1
    printf '\n%s=%s\n' "$mark" $?
  } 2>/dev/null | {
    # shellcheck disable=SC3045 # the shells of all nodes have it
    ulimit -v 100000
    LC_ALL=C sed "/^$mark=/{s/$mark=/=/;q3;}"
    [ $? = 3 ] || printf 'One of its lines is too long.\n=1\n'
  } 2>/dev/null | tail -c 16000
}
