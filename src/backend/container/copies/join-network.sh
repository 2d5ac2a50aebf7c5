#!/bin/sh
# Gives a node of a copied cluster the private address that its platform knows, on a network of its own that the nodes
# span over the engine's. systemd runs it as root at each boot, before other services. Prints what fails.
#
# Everyone on this computer can send packets to the port of this network. The node accepts only those that come from the
# engine's address of another node, and from a port that only root may use there. It learns no address from packets.
# IPsec policies filter them: every `ip` can set policies, and no firewall on a node removes them.
# Values: ADDRESS, with the bits of its network; ENGINE_ADDRESS, the address that the engine gave; PEERS, lines with the engine's
# address of each other node, and its private one.

set -e
PATH=$PATH:/usr/sbin:/sbin
name=e2e0 port=14789 source=701
bare=${ADDRESS%/*}
# A node that boots again has the hardware address that the others know.
# shellcheck disable=SC2046 # one word for each number
hardware() { printf 02:e2 && printf ':%02x' $(echo "$1" | tr . ' '); }

ip -4 -o addr show dev eth0 | grep -qF " $ENGINE_ADDRESS/" || {
  echo "The engine did not give this node the address $ENGINE_ADDRESS, which the other nodes know"
  exit 1
}
ip link delete "$name" 2>/dev/null || :
ip xfrm policy update dir in src 0.0.0.0/0 dst 0.0.0.0/0 proto 17 dport "$port" priority 2 action block
ip link add "$name" address "$(hardware "$bare")" type vxlan id 1 local "$ENGINE_ADDRESS" dev eth0 dstport "$port" \
  srcport "$source" "$((source + 1))" nolearning
ip addr add "$ADDRESS" broadcast + dev "$name"
ip link set "$name" up
echo "$PEERS" | while read -r engine private; do
  [ -n "$private" ] || continue
  ip xfrm policy update dir in src "$engine/32" dst 0.0.0.0/0 proto 17 sport "$source" dport "$port" priority 1
  bridge fdb append 00:00:00:00:00:00 dev "$name" dst "$engine"
  bridge fdb append "$(hardware "$private")" dev "$name" dst "$engine"
  ip neigh replace "$private" lladdr "$(hardware "$private")" dev "$name" nud permanent
done
# ip-detect asks for the way to this address, which nobody has.
ip route replace 192.0.2.1/32 dev "$name" src "$bare"
