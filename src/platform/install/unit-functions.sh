#!/bin/sh
# Functions that write a unit's file, and make systemd read it. Runs as root.
# Values, for write_runner_unit alone: RUNNER, the script that the unit runs; UNIT_FILE.

# systemd reads a new unit when it is first named; only a unit that it has read before needs a reload, which takes a
# quarter of a second or more. Anything but a clear answer means a reload.
reload_unless_read() {
  known=$(systemctl show -p LoadState -p NeedDaemonReload "$1.service" | grep -c -e '^LoadState=loaded$' -e '^NeedDaemonReload=no$' || :)
  [ "$known" = 2 ] || systemctl daemon-reload
}

# write_runner_unit DESCRIPTION
write_runner_unit() {
  cat >"$UNIT_FILE" <<CLUSTER_E2E_END
[Unit]
Description=$1
After=network.target

[Service]
ExecStart=/bin/sh $RUNNER
RemainAfterExit=yes

[Install]
WantedBy=multi-user.target
CLUSTER_E2E_END
  chmod 644 "$UNIT_FILE"
}
