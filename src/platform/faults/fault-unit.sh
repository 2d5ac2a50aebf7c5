#!/bin/sh
# Begins and heals a fault. systemd runs it as root, behind the text of the fault, which has the functions begin and
# heal, and perhaps keep_doing: `sh FILE begin` once, then `sh FILE last`, and `sh FILE heal` when the time is over,
# when the unit is stopped, when the node shuts down, and when begin has failed. What it prints goes to the unit's log.
# Both ends leave a line in the node's journal. If heal fails, the record stays, and the fault can be healed again.
# Values: ID; FOLDER; UNIT_FILE; DURATION in seconds; RECORD, a line about it; KIND.

fail() {
  echo "$*"
  exit 1
}

# For what faults change together: two may end at the same moment. Held until the shell ends.
lock() {
  exec 9<"$FOLDER"
  flock -w 60 9 2>/dev/null || :
}

# Without a journal that reads, both programs wait for ever.
mark() {
  timeout 5 logger -t cluster-e2e "fault $ID ($KIND) $1" 2>/dev/null ||
    echo "fault $ID ($KIND) $1" | timeout 5 systemd-cat -t cluster-e2e 2>/dev/null || :
}

case $1 in
  begin)
    [ ! -e "$FOLDER/$ID.healed" ] || fail 'it has been healed meanwhile'
    end=$(($(cut -d . -f 1 /proc/uptime) + DURATION))
    printf '%s\n' "$end" "$RECORD" >"$FOLDER/$ID.record" || exit
    (begin) || exit
    mark begins
    ;;
  last)
    ! command -v keep_doing >/dev/null || keep_doing
    exec sleep "$DURATION"
    ;;
  heal)
    heal || fail "fault $ID cannot be healed"
    [ ! -e "$FOLDER/$ID.record" ] || mark ends
    rm -f "$FOLDER/$ID.record" "$FOLDER/$ID.sh" "$UNIT_FILE"
    ;;
esac
