#!/bin/sh
# Removes the bootstrap server and everything that it served, once it has finished. systemd runs it as root on the
# first master whenever the server stops, including for a reboot. Prints nothing.
# Values: STATE, the server's state file; LINK, UNIT_FILE, SERVE, SETTINGS, SERVER and END, what to remove.

grep -qx finished "$STATE" || exit 0
# The shell has read this whole block before the script removes itself.
{
  rm -f "$LINK" "$UNIT_FILE"
  rm -rf "$SERVE"
  rm -f "$SETTINGS" "$SERVER" "$STATE" "$END"
  exit
}
