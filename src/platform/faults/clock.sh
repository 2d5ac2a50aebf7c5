#!/bin/sh
# A fault: sets the node's clock forward or back. systemd runs it as root, in front of fault-unit.sh. The true time is
# that of the beginning plus the time since then, so the clock is right afterwards, whatever has set it meanwhile.
# Values: ID; FOLDER; DURATION and OFFSET, in seconds; DEADLINE_OFFSET, a file that deadline.sh reads. Prints why it
# cannot begin.

# How long systemd may take to begin and to heal a fault, in seconds, besides its duration.
slack=600
services='chrony chronyd systemd-timesyncd ntp ntpd ntpsec'

begin() {
  # A container with the right to set the clock would set that of its computer.
  ! systemd-detect-virt --quiet --container 2>/dev/null || fail "it is a container, which has its computer's clock"
  lock
  if [ ! -e "$FOLDER/clock.base" ]; then
    for each in $services; do
      ! systemctl is-active --quiet "$each" || echo "$each" >>"$FOLDER/clock.services"
    done
    # shellcheck disable=SC2046 # one word each
    [ ! -e "$FOLDER/clock.services" ] || systemctl stop $(cat "$FOLDER/clock.services")
    echo "$(date +%s.%N) $(uptime_seconds)" | awk '{ printf "%.3f\n", $1 - $2 }' >"$FOLDER/clock.base"
  fi
  echo "$OFFSET $(uptime_seconds)" | awk -v more=$((DURATION + slack)) '{ printf "%d %d\n", $1, $2 + more }' \
    >"$FOLDER/$ID.offset"
  set_clock || {
    heal
    fail 'its clock cannot be set'
  }
}

heal() {
  lock
  rm -f "$FOLDER/$ID.offset"
  [ -e "$FOLDER/clock.base" ] || return 0
  set_clock
  for each in "$FOLDER"/*.offset; do [ ! -e "$each" ] || return 0; done
  # shellcheck disable=SC2046 # one word each
  [ ! -e "$FOLDER/clock.services" ] || systemctl --no-block start $(cat "$FOLDER/clock.services")
  rm -f "$FOLDER/clock.base" "$FOLDER/clock.services"
}

uptime_seconds() { cut -d ' ' -f 1 /proc/uptime; }

# The machine's deadline is on the true time: at no moment may it seem to have passed.
set_clock() {
  # shellcheck disable=SC2046 # two words
  set -- $(cat "$FOLDER"/*.offset 2>/dev/null | awk '{ sum += $1; if ($2 > end) end = $2 }
    END { printf "%d %d", sum, end }')
  boot=$(cat /proc/sys/kernel/random/boot_id)
  before=$(awk -v boot="$boot" -v up="$(uptime_seconds)" '$1 == boot && $3 > up { print $2 + 0 }' \
    "$DEADLINE_OFFSET" 2>/dev/null)
  [ "$1" -lt "${before:-0}" ] || tell_deadline "$boot $*"
  now=$(echo "$(cat "$FOLDER/clock.base") $(uptime_seconds) $1" | awk '{ printf "%.3f", $1 + $2 + $3 }')
  date --set="@$now" >/dev/null || return 1
  tell_deadline "$boot $*"
}

tell_deadline() { echo "$1" >"$DEADLINE_OFFSET.$ID" && mv -f "$DEADLINE_OFFSET.$ID" "$DEADLINE_OFFSET"; }
