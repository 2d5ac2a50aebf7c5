#!/bin/sh
# A function that makes systemd read a unit whose file was just written. systemd reads a new unit when it is first
# named; only a unit that it has read before needs a reload, which takes a quarter of a second or more. Runs as root.

# Anything but a clear answer means a reload.
reload_unless_read() {
  known=$(systemctl show -p LoadState -p NeedDaemonReload "$1.service" | grep -c -e '^LoadState=loaded$' -e '^NeedDaemonReload=no$' || :)
  [ "$known" = 2 ] || systemctl daemon-reload
}
