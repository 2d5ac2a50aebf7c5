#!/bin/sh
# Prints all logs of a node, with frame.sh. Runs as root.
# Values: INSTALL_LOG, INSTALL_STATUS and GENCONF_LOG, paths; UNITS, whose state matters; TAIL_BYTES of each log,
# UNITS_BYTES and JOURNAL_LINES.

tail_of() { tail -c "$TAIL_BYTES" "$1" 2>/dev/null; }
units() {
  systemctl --no-pager --no-legend --failed list-units
  # shellcheck disable=SC2086 # one word per unit
  systemctl --no-pager --lines 20 status $UNITS
}

tail_of "$INSTALL_LOG" | frame install.log
tail_of "$INSTALL_STATUS" | frame install-status.txt
tail_of "$GENCONF_LOG" | frame genconf.log
tail_of /var/log/cloud-init.log | frame cloud-init.log
tail_of /var/log/cloud-init-output.log | frame cloud-init-output.log
units 2>&1 | tail -c "$UNITS_BYTES" | frame units.txt
journalctl --no-pager -q -b -n "$JOURNAL_LINES" 2>&1 | tail -c "$TAIL_BYTES" | frame journal.txt
exit 0
