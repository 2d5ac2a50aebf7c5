#!/bin/sh
# Prints all logs of a node, with frame.sh. Runs as root.
# Values: INSTALL_LOG, INSTALL_STATUS and GENCONF_LOG, paths, and the same of UPGRADE; UNITS, whose state matters;
# UNIT_LISTS and FILE_LISTS, files with lines that name further units and logs, MOST_LISTED of them; TAIL_BYTES of each
# log, PLATFORM_BYTES of all that the lists name and of an upgrade's logs, STATUS_BYTES, UNITS_BYTES and JOURNAL_LINES; IS_TIMED:
# not empty to get times with seconds' fractions, in the journal of all boots, and the node's clock.

journal() {
  if [ -z "$IS_TIMED" ]; then
    journalctl --no-pager -q -b -n "$JOURNAL_LINES"
  else
    # Older systemds don't have the first form.
    journalctl --no-pager -n "$JOURNAL_LINES" -o short-unix 2>/dev/null ||
      journalctl --no-pager -n "$JOURNAL_LINES" -o short-iso
  fi
}
tail_of() { read_file "$1" tail -c "$TAIL_BYTES"; }
units() {
  systemctl --no-pager --no-legend --failed list-units
  # shellcheck disable=SC2086 # one word per unit
  systemctl --no-pager --lines 20 status $UNITS
}
# listed LISTS
listed() {
  for list in $1; do read_file "$list" cat; done | head -n "$MOST_LISTED"
}
listed_units() {
  set --
  while read -r unit; do
    [ -z "$unit" ] || set -- "$@" --unit "$unit"
  done <<CLUSTER_E2E_END
$(listed "$UNIT_LISTS")
CLUSTER_E2E_END
  [ $# -eq 0 ] || journalctl --no-pager -q -b -n "$JOURNAL_LINES" "$@"
}
listed_files() {
  count=$(listed "$FILE_LISTS" | wc -l)
  listed "$FILE_LISTS" | while read -r file; do
    [ -f "$file" ] || continue
    printf '==> %s <==\n' "$file"
    read_file "$file" tail -c "$((PLATFORM_BYTES / count))" ||
      printf '(not read: links lead to it that others than root can change)'
    echo
  done
}

[ -z "$IS_TIMED" ] || date +%s.%N | frame clock.txt
tail_of "$INSTALL_LOG" | frame install.log
read_file "$INSTALL_STATUS" tail -c "$STATUS_BYTES" | frame install-status.txt
tail_of "$GENCONF_LOG" | frame genconf.log
read_file "$UPGRADE_LOG" tail -c "$PLATFORM_BYTES" | frame upgrade.log
read_file "$UPGRADE_STATUS" tail -c "$STATUS_BYTES" | frame upgrade-status.txt
read_file "$UPGRADE_GENCONF_LOG" tail -c "$PLATFORM_BYTES" | frame upgrade-genconf.log
tail_of /var/log/cloud-init.log | frame cloud-init.log
tail_of /var/log/cloud-init-output.log | frame cloud-init-output.log
units 2>&1 | tail -c "$UNITS_BYTES" | frame units.txt
journal 2>&1 | tail -c "$TAIL_BYTES" | frame journal.txt
listed_units 2>&1 | tail -c "$PLATFORM_BYTES" | frame platform-units.txt
listed_files 2>&1 | tail -c "$PLATFORM_BYTES" | frame platform-files.txt
exit 0
