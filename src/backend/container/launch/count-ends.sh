#!/bin/sh
# Prints how many of a node's units for its end have a status of their own. It runs as root. Before version 236, systemd
# has no such setting. A node that has just started may not answer yet.
# Values: UNITS, separated by spaces.

for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
  # shellcheck disable=SC2086 # one word each
  found=$(systemctl show -p SuccessAction $UNITS 2>/dev/null) && break
  sleep 0.5
done
echo "$found" | grep -c =exit-force || :
