#!/bin/sh
# Prints all logs of a node, with frame.sh. Runs as root.
# Values: INSTALL_LOG, INSTALL_STATUS and GENCONF_LOG, paths, and the same of UPGRADE; UNITS, whose state matters;
# UNIT_LISTS and FILE_LISTS, files with lines that name further units and logs, MOST_LISTED of them; TAIL_BYTES of each
# log, PLATFORM_BYTES of all that the lists name and of an upgrade's logs, STATUS_BYTES, UNITS_BYTES, DUMPS_BYTES and
# JOURNAL_LINES; AGO, not empty to get only the journals' lines of the last AGO seconds. Journals hold all boots.

# The lines of systemctl's status have no time zone.
TZ=UTC
export TZ
# Before version 234, systemd has no microseconds in this form.
form=short-iso-precise
journalctl -q -n 0 -o "$form" >/dev/null 2>&1 || form=short-iso
since=
[ -z "$AGO" ] || since=--since=@$(($(date +%s) - AGO))
# journal WORDS
journal() { journalctl --no-pager -n "$JOURNAL_LINES" -o "$form" ${since:+"$since"} "$@"; }
kernel() { journal -q _TRANSPORT=kernel; }
core_dumps() { coredumpctl --no-pager list 2>/dev/null; }
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
  listed "$UNIT_LISTS" | {
    set --
    while read -r unit; do
      [ -z "$unit" ] || set -- "$@" --unit "$unit"
    done
    [ $# -eq 0 ] || journal -q "$@"
  }
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
kernel 2>&1 | tail -c "$UNITS_BYTES" | frame kernel.txt
core_dumps | tail -c "$DUMPS_BYTES" | frame core-dumps.txt
listed_units 2>&1 | tail -c "$PLATFORM_BYTES" | frame platform-units.txt
listed_files 2>&1 | tail -c "$PLATFORM_BYTES" | frame platform-files.txt
exit 0
