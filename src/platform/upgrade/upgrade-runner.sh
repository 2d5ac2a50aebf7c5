#!/bin/sh
# Upgrades the platform on a node: runs the script that the artifact generated for it, and if that succeeds, reports to
# the bootstrap server. Runs as root behind runner-start.sh, as a unit of systemd, and again after a reboot in the
# middle. Prints into the upgrade log.
# Values: STATUS_FILE, the file with the outcome; SCRIPT, below the server's URL, and SCRIPT_ARGUMENTS; SCRIPT_FILE,
# where it is put; OLD_VERSION, which the node has; UNIT, its own; BOOTSTRAP_SECONDS and REPORT_SECONDS, limits.

upgrade() {
  [ "$1" != running ] || echo 'The machine was restarted during the upgrade, which now starts again.'
  echo running >"$STATUS_FILE"
  limit "$BOOTSTRAP_SECONDS"
  until ask "$SCRIPT" -o "$SCRIPT_FILE"; do
    pause || {
      echo 'Cannot read the upgrade script from the bootstrap server.'
      return 1
    }
  done
  # shellcheck disable=SC2086 # one word each
  CLUSTER_OLD_VERSION=$OLD_VERSION bash "$SCRIPT_FILE" $SCRIPT_ARGUMENTS
}

before=$(cat "$STATUS_FILE" 2>/dev/null)
case $before in
  'exit '*) status=${before#exit } ;;
  *)
    upgrade "$before"
    status=$?
    echo "exit $status" >"$STATUS_FILE.new"
    mv -f "$STATUS_FILE.new" "$STATUS_FILE"
    ;;
esac
rm -f "$SCRIPT_FILE"
limit "$REPORT_SECONDS"
until [ "$status" -ne 0 ] || ask installed --data '' -o /dev/null 2>/dev/null || ! pause; do :; done
systemctl --no-reload disable "$UNIT" 2>/dev/null
exit "$status"
