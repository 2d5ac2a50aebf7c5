#!/bin/sh
# Notes for start-system.sh that this node was powered off by force. systemd runs it as root, as the last thing before it
# ends. Prints nothing. Argument: how it ends, which is "exit" for all that isn't by force (see self-reboot.ts).
# Values: STATE, as in start-system.sh.

case $1 in poweroff | halt) : >"$STATE/off" ;; esac
