#!/bin/sh
# Powers this test machine off at the second that its argument names, whatever runs on it. Runs as root, as a unit of
# systemd. Prints nothing. It goes by the clock, so that a reboot doesn't prolong the machine's life; and, since the
# clock may be set back, by the time since the boot too. How far a fault has set the clock ahead is in a file that clock.sh
# writes: that doesn't shorten the life. The file counts only in the boot that it names, and until the second after that
# boot by which its faults must have been healed.
# Power-off is forced because a service that ignores TERM holds up a plain power-off.

limit=/run/cluster-e2e-deadline
boot=$(cat /proc/sys/kernel/random/boot_id)

# number TEXT: prints it if it is a whole number of at most 12 characters, and 0 otherwise
number() {
  case $1 in
    '' | - | *[!0-9-]* | ?*-* | ?????????????*) echo 0 ;;
    *) echo "$1" ;;
  esac
}
uptime_seconds() { cut -d . -f 1 /proc/uptime; }
ahead() {
  # shellcheck disable=SC2046 # three words: the boot, the offset and its end
  set -- $(cat /run/cluster-e2e-clock-offset 2>/dev/null)
  if [ $# -eq 3 ] && [ "$1" = "$boot" ] && [ "$(number "$3")" -gt "$(uptime_seconds)" ]; then
    number "$2"
  else
    echo 0
  fi
}
# The earliest end so far, in seconds since this boot. A copy of a machine has another deadline.
known_end() {
  # shellcheck disable=SC2046 # three words
  set -- "$1" $(cat "$limit" 2>/dev/null)
  [ "$2 $3" = "$boot $1" ] && number "$4"
}

while left=$(($1 + $(ahead) - $(date +%s))); [ "$left" -gt 0 ]; do
  up=$(uptime_seconds)
  end=$(known_end "$1")
  if [ -z "$end" ] || [ "$((up + left))" -lt "$end" ]; then
    end=$((up + left))
    echo "$boot $1 $end" >"$limit.new" && mv -f "$limit.new" "$limit"
  fi
  # Both are in whole seconds, so their sum may be two too few.
  [ "$up" -lt "$((end + 2))" ] || break
  [ "$left" -lt 10 ] || left=10
  sleep "$left"
done
systemctl --no-block poweroff
sleep 120
# A privileged container would end by a signal, which its engine takes for a failure, and starts it again.
systemctl --force exit 0 2>/dev/null || systemctl poweroff --force
sleep 60
systemctl poweroff --force --force
