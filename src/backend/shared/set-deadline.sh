#!/bin/sh
# Sets up the service that ends a machine at its deadline, or removes it. It runs as root: cloud-init starts it before
# SSH, at every boot; copies of machines, once. Prints nothing. It needs nothing newer than systemd 219.
# Values: SCRIPT, the path of deadline.sh, and SCRIPT_TEXT; UNIT, the unit's name, and UNIT_TEXT, nothing if the
# machine has no deadline.

set -eu
umask 022
file=/etc/systemd/system/$UNIT
if [ -z "$UNIT_TEXT" ]; then
  [ ! -e "$file" ] || systemctl disable "$UNIT"
  rm -f "$file" "$SCRIPT"
  systemctl daemon-reload
  systemctl stop "$UNIT" 2>/dev/null || :
  exit 0
fi
mkdir -p "$(dirname "$SCRIPT")"
printf %s "$SCRIPT_TEXT" >"$SCRIPT"
printf %s "$UNIT_TEXT" >"$file"
chmod 0755 "$SCRIPT"
systemctl daemon-reload
systemctl enable "$UNIT"
# The unit refuses to be stopped, and so to be restarted. If it runs with another deadline, systemd starts it again.
systemctl kill --signal=KILL "$UNIT" 2>/dev/null || :
systemctl --no-block start "$UNIT"
