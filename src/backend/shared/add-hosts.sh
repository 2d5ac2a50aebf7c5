#!/bin/sh
# Adds the names under which machines find each other. cloud-init runs it as root at every boot, so it doesn't add a
# line that is already there. Prints nothing.
# Values: HOSTS, the lines.

while read -r line; do
  grep -qxF "$line" /etc/hosts || echo "$line" >>/etc/hosts
done <<END
$HOSTS
END
