#!/bin/sh
# Defines limited for other scripts: runs a program for at most so many seconds, without input. $1: the seconds, then the
# program and its arguments. Prints the end of what the program prints, and behind it "=" and its status; 124 or 137 if the
# limit has ended it. Processes that it leaves may hold its output open: nobody waits for them.
# Value: RUN_LIMITED, run-limited.sh.

# In the foreground, timeout leaves it to that script to end what the program has started. No line that sed gets is longer
# than what is kept. A mark is behind the program's last line, also behind one without a line break.
limited() {
  limit=$1
  read -r mark </proc/sys/kernel/random/uuid
  shift
  {
    timeout --foreground -k 10 "$limit" sh -c "$RUN_LIMITED" e2e-limited "$mark" "$@" </dev/null 2>&1
    printf '\n%s=%s\n' "$mark" $?
  } 2>/dev/null | LC_ALL=C fold -b -w 16000 2>/dev/null | LC_ALL=C sed "/^$mark=/{s/$mark=/=/;q;}" | tail -c 16000
}
