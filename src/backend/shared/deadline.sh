#!/bin/sh
# Powers this test machine off at the second that its argument names, whatever runs on it. Runs as root, as a unit of
# systemd, on the clock: a reboot doesn't prolong the machine's life. Prints nothing. Power-off is forced because a
# service that ignores TERM holds up a plain power-off. How far a fault has set the clock ahead is in a file that clock.sh
# writes: that doesn't shorten the life either.

ahead() { cat /run/cluster-e2e-clock-offset 2>/dev/null || echo 0; }
while left=$(($1 + $(ahead) - $(date +%s))); [ "$left" -gt 0 ]; do
  [ "$left" -lt 10 ] || left=10
  sleep "$left"
done
systemctl --no-block poweroff
sleep 120
systemctl poweroff --force
sleep 60
systemctl poweroff --force --force
