#!/bin/sh
# Waits for a machine's first boot to end, and checks its result. Runs as root. Many errors of cloud-init (such as a
# missing locale) mean little; the check is whether the deadline is set. `cloud-init status --wait` would also work
# where it exists, but it starts Python, which takes ten seconds or more on a translated machine. Prints the last
# lines of cloud-init if it complained. Meanwhile, prints the last line of its log to stderr every five seconds if the
# log has grown.
# Arguments: the deadline's unit, or nothing; the folder where cloud-init keeps its state.
# Values: DEADLINE_MISSING and COMPLAINED, exit statuses.

error=
looks=0
seen=
until [ -e "$2/result.json" ] || [ -e "$2/disabled" ]; do
  ! systemctl is-failed --quiet cloud-final.service 2>/dev/null || {
    error=yes
    break
  }
  sleep 0.5
  looks=$(((looks + 1) % 10))
  [ "$looks" = 0 ] || continue
  size=$(wc -c /var/log/cloud-init.log /var/log/cloud-init-output.log 2>/dev/null)
  [ "$size" = "$seen" ] || tail -n 1 /var/log/cloud-init.log >&2 2>/dev/null
  seen=$size
done
! tr -d '\n' 2>/dev/null <"$2/result.json" | grep -q '"errors": *\[ *"' || error=yes
show() {
  cloud-init status --long 2>/dev/null | tail -n 12
  tail -n 20 /var/log/cloud-init-output.log 2>/dev/null
}
if [ -n "$1" ] && ! systemctl is-active --quiet "$1"; then
  show
  exit "$DEADLINE_MISSING"
fi
[ -z "$error" ] || {
  show
  exit "$COMPLAINED"
}
