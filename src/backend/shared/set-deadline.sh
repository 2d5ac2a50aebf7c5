#!/bin/sh
# Sets up the service that ends a machine at its deadline. cloud-init runs it as root, before SSH, at every boot;
# prints nothing. It needs nothing newer than systemd 219. DefaultDependencies=no keeps the first attempt at power-off
# from ending the loop itself.
# Values: SCRIPT, the path of deadline.sh, and SCRIPT_TEXT; UNIT, the unit's name; SECOND, the deadline.

set -eu
mkdir -p "$(dirname "$SCRIPT")"
printf '#!/bin/sh\n%s' "$SCRIPT_TEXT" >"$SCRIPT"
cat >"/etc/systemd/system/$UNIT" <<END
[Unit]
Description=End of this test machine
DefaultDependencies=no
[Service]
ExecStart=/bin/sh $SCRIPT $SECOND
Restart=always
[Install]
WantedBy=sysinit.target
END
chmod 0755 "$SCRIPT"
systemctl daemon-reload
systemctl enable "$UNIT"
systemctl --no-block start "$UNIT"
