#!/bin/sh
# shellcheck disable=SC2034 # ip-detect prints address
# Finds the node's private IPv4 address. The installer runs it on each node as ip-detect, as root. Sends nothing: it
# asks the kernel which address it would send from. Without a default route, it takes the host's first address.

PATH=$PATH:/usr/sbin:/sbin
address=$(ip -4 route get 192.0.2.1 2>/dev/null | sed -n 's/.* src \([0-9.]*\).*/\1/p' | head -n 1)
[ -n "$address" ] || address=$(hostname -I 2>/dev/null | tr ' ' '\n' | grep -E '^([0-9]+\.){3}[0-9]+$' | head -n 1)
if [ -z "$address" ]; then
  echo 'This machine has no IPv4 address' >&2
  exit 1
fi
