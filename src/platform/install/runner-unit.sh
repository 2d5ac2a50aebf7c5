#!/bin/sh
# A function that writes the file of a unit which runs a script, now and after each boot until it is disabled. Runs as
# root.
# Values: RUNNER, the script; UNIT_FILE.

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
