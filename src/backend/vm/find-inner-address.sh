#!/bin/sh
# shellcheck disable=SC2034 # ip-detect prints address
# Finds the node's private IPv4 address. The installer runs it on each node as ip-detect, as root. It isn't the
# address of the default route, which leads outside, where all nodes have the same address.
# Values: PREFIX of the cluster's network, as a pattern of sed; BITS, the length of its mask.

PATH=$PATH:/usr/sbin:/sbin
address=$(ip -4 -o address show 2>/dev/null | sed -n "s|.* inet \\($PREFIX\\.[0-9.]*\\)/$BITS .*|\\1|p" | head -n 1)
if [ -z "$address" ]; then
  echo 'This machine has no address in the private network of its cluster' >&2
  exit 1
fi
