#!/bin/sh
# Gives a node of a copied cluster the private address that its platform knows, on a network of its own that the nodes
# span over the engine's. systemd runs it as root at each boot, before other services. Prints what fails.
# Values: ADDRESS, with the bits of its network.

set -e
PATH=$PATH:/usr/sbin:/sbin
name=e2e0
bare=${ADDRESS%/*}
# A node that boots again has the hardware address that the others remember.
# shellcheck disable=SC2046 # one word for each number
hardware=02:e2$(printf ':%02x' $(echo "$bare" | tr . ' '))
ip link delete "$name" 2>/dev/null || :
ip link add "$name" address "$hardware" type vxlan id 1 group 239.255.93.1 dev eth0 dstport 14789 ttl 1
ip addr add "$ADDRESS" broadcast + dev "$name"
ip link set "$name" up
# ip-detect asks for the way to this address, which nobody has.
ip route replace 192.0.2.1/32 dev "$name" src "$bare"
