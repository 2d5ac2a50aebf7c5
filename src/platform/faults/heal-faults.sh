#!/bin/sh
# Heals faults on a node. Runs as root behind script-start.sh; prints nothing. Its arguments are ids; one that the node
# does not know counts as healed. One that cannot be healed keeps none of the others.
# Values: FOLDER; UNIT_PREFIX.

main() {
  mkdir -p "$FOLDER"
  left=
  for id; do
    # Keeps a fault from beginning whose start was interrupted on its way.
    : >"$FOLDER/$id.healed"
    systemctl stop "$UNIT_PREFIX$id.service" 2>/dev/null || :
    [ ! -e "$FOLDER/$id.sh" ] || sh "$FOLDER/$id.sh" heal || :
    [ ! -e "$FOLDER/$id.record" ] || left="${left:+$left, }fault $id is still there"
  done
  [ -z "$left" ] || fail "$left"
}
