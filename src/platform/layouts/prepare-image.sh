#!/bin/sh
# shellcheck disable=SC2034 # $conditions: see package-functions.sh
# Installs in a node image what a layout's nodes need, so that not every node has to install it. Runs as root while
# the image is built, behind script-start.sh and with package-functions.sh; a layout may replace set_up_image. It
# starts nothing: systemd doesn't run then, and containers use their host's clock. Prints what script-start.sh does.
# Arguments: the programs.

main() {
  conditions=none
  read_system
  install_missing "$@"
  set_up_image
}

set_up_image() { :; }
