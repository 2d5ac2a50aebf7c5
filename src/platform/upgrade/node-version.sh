#!/bin/sh
# Collects what is known about the platform's version on a node. Runs as root, behind find-layout.sh. It prints lines
# "key=value":
#
#     layout=folder             empty if no installation has started
#     version={"version": …}    the platform's own version file, in one line
#     facts={"name": …}         what a platform that is a folder says about itself, in one line
#     status=exit 0             status of the last upgrade's script; or "running", or empty
#     unit=active               systemd's ActiveState of the upgrade unit
#     from=1.0                  the version before that upgrade, and the one that it is for
#     to=2.0
#     log=…                     the last lines of its log, if it did not succeed
#
# Values: STATUS_FILE, VERSIONS_FILE, LOG_FILE and UNIT of the upgrade; TAIL_LINES and TAIL_BYTES of a text; for each
# layout, VERSION_FILE_<name> and FACTS_FILE_<name>, which may be empty.

# Not echo: in some shells, it turns \n into a line break.
say() { printf '%s=%s\n' "$1" "$(printf '%s' "$2" | tr -d '\n')"; }
start_of() { head -c "$TAIL_BYTES" "$1" 2>/dev/null; }

status=$(start_of "$STATUS_FILE" || :)
# shellcheck disable=SC2153 # a value
unit=$(systemctl show -p ActiveState "$UNIT" 2>/dev/null | sed 's/^ActiveState=//')
# The status is written before the unit ends, so a second reading is at least as recent as the unit's state.
[ "$unit" = active ] || status=$(start_of "$STATUS_FILE" || :)
# A machine that was restarted during the upgrade resumes it automatically, but not at once.
[ "$status:$unit" != running:inactive ] || ! systemctl is-enabled --quiet "$UNIT" 2>/dev/null || unit=activating
# shellcheck disable=SC2154 # find-layout.sh sets it
say layout "$layout"
for each in $LAYOUTS; do
  [ "$each" = "$layout" ] || continue
  version_file='' facts_file=''
  eval "version_file=\$VERSION_FILE_$each facts_file=\$FACTS_FILE_$each"
  say version "$(start_of "$version_file")"
  [ -z "$facts_file" ] || say facts "$(start_of "$facts_file")"
done
say status "$status"
say unit "$unit"
say from "$(sed -n 1p "$VERSIONS_FILE" 2>/dev/null | head -c "$TAIL_BYTES")"
say to "$(sed -n 2p "$VERSIONS_FILE" 2>/dev/null | head -c "$TAIL_BYTES")"
case $status in
  '' | 'exit 0') ;;
  *) tail -c "$TAIL_BYTES" "$LOG_FILE" 2>/dev/null | tail -n "$TAIL_LINES" | sed 's/^/log=/' ;;
esac
exit 0
