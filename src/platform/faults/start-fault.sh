#!/bin/sh
# Begins a fault on a node, as a unit of systemd that heals it when its time is over, also if the program that began it
# is gone. Runs as root behind script-start.sh; prints nothing. Everything is in memory: nothing is left after a
# restart of the node.
# Values: ID; FOLDER; UNIT, UNIT_FILE; DURATION; SCRIPT_TEXT, what the unit runs.

main() {
  mkdir -p "$FOLDER" "${UNIT_FILE%/*}"
  script=$FOLDER/$ID.sh
  log=$FOLDER/$ID.log
  printf '%s' "$SCRIPT_TEXT" >"$script"
  printf '%s\n' "[Unit]
Description=Fault $ID for a test
[Service]
ExecStartPre=/bin/sh -c 'exec /bin/sh $script begin >$log 2>&1'
ExecStart=/bin/sh $script last
ExecStopPost=/bin/sh $script heal
TimeoutStartSec=300" >"$UNIT_FILE"
  chmod 644 "$UNIT_FILE"
  systemctl start "$UNIT" 2>/dev/null && status=0 || status=$?
  reason=$(tail -n 1 "$log" 2>/dev/null || :)
  rm -f "$log"
  [ "$status" -eq 0 ] || {
    # Older systemds don't run ExecStopPost after such a failure.
    [ ! -e "$script" ] || sh "$script" heal 2>/dev/null || :
    systemctl reset-failed "$UNIT" 2>/dev/null || :
    [ ! -e "$FOLDER/$ID.healed" ] || fail 'it has been healed meanwhile'
    fail "${reason:-the unit $UNIT does not start}"
  }
}
