#!/bin/sh
# Installs the agent of a template. cloud-init runs it as root during the template's first boot, which the agent
# outlives. Everything is below /run, so that a restart of a copy finds nothing of it. Prints nothing.
# Values: AGENT, the text of the agent; FOLDER, where it is kept.

umask 077
mkdir -p "$FOLDER"
printf '%s\n' "$AGENT" >"$FOLDER/agent"
systemd-run --quiet --no-block --unit=cluster-e2e-template --property=After=cloud-final.service \
  --property=After=multi-user.target sh "$FOLDER/agent"
