#!/bin/sh
# Starts the installation on a node as a unit of systemd, unless it is already running, so that this can run again
# after a lost answer. If the installation has already succeeded, in an earlier boot or just now, the unit only
# reports that to the bootstrap server. It retries a failed installation. Runs as root, behind script-start.sh and
# with runner-unit.sh and unit-functions.sh; prints nothing.
# Values: FOLDER, LOG_FILE, STATUS_FILE, UNIT, UNIT_FILE; RUNNER, the path of install-runner.sh, and RUNNER_TEXT;
# LAYOUT, the layout's name, and LAYOUT_FILE, where it is kept.

main() {
  mkdir -p "$FOLDER"
  status=$(cat "$STATUS_FILE" 2>/dev/null || :)
  if [ "$status" = running ] && systemctl is-active --quiet "$UNIT"; then return 0; fi
  if [ -e "$UNIT_FILE" ]; then
    systemctl stop "$UNIT" 2>/dev/null || :
    systemctl reset-failed "$UNIT" 2>/dev/null || :
  fi
  printf '%s' "$RUNNER_TEXT" >"$RUNNER"
  echo "$LAYOUT" >"$LAYOUT_FILE"
  [ "$status" = 'exit 0' ] || rm -f "$LOG_FILE" "$STATUS_FILE"
  write_runner_unit 'Installs the platform'
  systemctl --no-reload enable "$UNIT" || fail 'cannot enable the install unit'
  reload_unless_read "$UNIT"
  systemctl start "$UNIT" || fail 'the install unit does not start'
}
