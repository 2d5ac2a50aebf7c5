#!/bin/sh
# Runs a program until it ends, or this script gets TERM: then all that the program has started gets TERM too, and KILL a
# second later, also in other sessions and control groups, as of su. Runs as root, behind process-tree.sh. Arguments: the
# program and its arguments.

started() { process_tree $$ 0 | awk -v self=$$ '$1 != self { print $1 }'; }
end() {
  all=$(started)
  # shellcheck disable=SC2086 # one word each
  kill -TERM $all
  sleep 1
  # shellcheck disable=SC2046,SC2086 # one word each
  kill -KILL $all $(started)
  exit 124
} 2>/dev/null

trap end TERM
"$@" &
wait $!
