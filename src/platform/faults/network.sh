#!/bin/sh
# A fault: delays, loses or limits the packets that a node sends from its private address's device. systemd runs it
# as root, in front of fault-unit.sh. sshd's packets and those of the installer's server are left alone.
# Values: ID; FOLDER; ADDRESS, the private one; NETEM, words for tc; PORT, of that server. Prints why it cannot begin.

begin() {
  command -v tc >/dev/null || fail 'it has no tc: install the package iproute2 (iproute-tc on relatives of Red Hat)'
  echo "$NETEM" >"$FOLDER/$ID.netem"
  shape || {
    rm -f "$FOLDER/$ID.netem"
    shape
    fail "tc cannot delay packets: does the kernel have sch_netem, sch_prio and cls_u32? Containers have this computer's kernel: try modprobe sch_netem there (on relatives of Red Hat, kernel-modules-extra has it)"
  }
}

heal() {
  rm -f "$FOLDER/$ID.netem"
  shape 2>/dev/null
}

# Replaces our own queue by one that has all faults of this kind, one behind the other. A queue of somebody else's stays,
# and is an error. Only what the filters choose leaves by way of the second band.
shape() {
  PATH=$PATH:/usr/sbin:/sbin
  device=$(ip -o -4 addr show | awk -v address="$ADDRESS" 'index($4, address "/") == 1 { print $2; exit }')
  tc qdisc del dev "$device" root handle e2e: 2>/dev/null
  set -- "$FOLDER"/*.netem
  [ -e "$1" ] || return 0
  tc qdisc add dev "$device" root handle e2e: prio bands 2 priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 || return 1
  parent=e2e:2 number=0
  for each; do
    number=$((number + 1))
    # shellcheck disable=SC2046 # one word each
    tc qdisc add dev "$device" parent "$parent" handle "e$number:" netem limit 10000 $(cat "$each") || return 1
    parent=e$number:1
  done
  for match in 'sport 22' "sport $PORT" "dport $PORT"; do
    # shellcheck disable=SC2086 # two words
    tc filter add dev "$device" parent e2e: protocol ip prio 1 u32 \
      match ip protocol 6 0xff match ip $match 0xffff flowid e2e:1 || return 1
  done
  tc filter add dev "$device" parent e2e: protocol ip prio 2 u32 match u32 0 0 flowid e2e:2 || return 1
  ! grep -q . /proc/net/if_inet6 2>/dev/null ||
    tc filter add dev "$device" parent e2e: protocol ipv6 prio 3 u32 match u32 0 0 flowid e2e:2
}
