#!/bin/sh
# Starts the upgrade of a node as a unit of systemd, unless one is already running, so that this can run again after a
# lost answer. Runs as root, behind script-start.sh and with runner-unit.sh and unit-functions.sh;
# prints nothing.
# Values: FOLDER, LOG_FILE, STATUS_FILE, UNIT, UNIT_FILE; RUNNER, the path of upgrade-runner.sh, and RUNNER_TEXT;
# VERSIONS_FILE, and VERSIONS, what to write there.

main() {
  mkdir -p "$FOLDER"
  if systemctl is-active --quiet "$UNIT" && ! grep -q '^exit ' "$STATUS_FILE" 2>/dev/null; then return 0; fi
  if [ -e "$UNIT_FILE" ]; then
    systemctl stop "$UNIT" 2>/dev/null || :
    systemctl reset-failed "$UNIT" 2>/dev/null || :
  fi
  rm -f "$LOG_FILE" "$STATUS_FILE"
  printf '%s' "$RUNNER_TEXT" >"$RUNNER"
  printf '%s\n' "$VERSIONS" >"$VERSIONS_FILE"
  write_runner_unit 'Upgrades the platform'
  systemctl --no-reload enable "$UNIT" || fail 'cannot enable the upgrade unit'
  reload_unless_read "$UNIT"
  systemctl start "$UNIT" || fail 'the upgrade unit does not start'
}
