#!/bin/sh
# A fault: delays, loses or limits the packets that a node sends from its private address's device. systemd runs it
# as root, in front of fault-unit.sh. sshd's packets and those of the installer's server are left alone.
# Values: ID; FOLDER; ADDRESS, the private one; NETEM, words for tc; TOWARDS, the addresses to which packets go, or
# nothing; PORT, of that server. Prints why it cannot begin.

PATH=$PATH:/usr/sbin:/sbin

begin() {
  lock
  command -v tc >/dev/null || fail "$(no_tc)"
  echo "$NETEM" >"$FOLDER/$ID.netem"
  [ -z "$TOWARDS" ] || echo "$TOWARDS" >"$FOLDER/$ID.towards"
  shape || {
    rm -f "$FOLDER/$ID.netem" "$FOLDER/$ID.towards"
    shape
    fail "$(lack)"
  }
}

no_tc() { echo 'tc is missing: install the package iproute2 (iproute-tc on relatives of Red Hat)'; }

lack() { echo "tc cannot delay packets: does the kernel have sch_netem, sch_prio and cls_u32? Containers have the kernel of the engine's computer: try modprobe sch_netem there (on relatives of Red Hat, kernel-modules-extra has it)"; }

heal() {
  lock
  rm -f "$FOLDER/$ID.netem" "$FOLDER/$ID.towards"
  shape 2>/dev/null
}

measure() {
  command -v tc >/dev/null || {
    echo "lack=$(no_tc)"
    return 0
  }
  queue=$(tc qdisc show dev "$(device)" 2>/dev/null | grep netem | tr '\n' ' ')
  echo "queue=$queue"
  [ -n "$queue" ] || can_delay || echo "lack=$(lack)"
}

# Tries it in a network of its own. Where there is no such network, the fault itself finds out.
can_delay() {
  unshare -n true 2>/dev/null || return 0
  unshare -n sh -c 'tc qdisc add dev lo root handle 1: prio && tc qdisc add dev lo parent 1:1 netem delay 1ms &&
    tc filter add dev lo parent 1: protocol ip prio 1 u32 match u32 0 0 flowid 1:1' 2>/dev/null
}

# shellcheck disable=SC2153 # set by the frame
device() { ip -o -4 addr show | awk -v address="$ADDRESS" 'index($4, address "/") == 1 { print $2; exit }'; }

# Replaces our own queue by one that has all faults of this kind. A queue of somebody else's stays, and is an error. The
# second band is for everything that the filters don't choose otherwise: it has the faults that concern all packets, one
# behind the other. Each fault with a direction has a band of its own behind it, with its own effect and then theirs.
shape() {
  device=$(device) number=0 bands=2
  tc qdisc del dev "$device" root handle e2e: 2>/dev/null
  set -- "$FOLDER"/*.netem
  [ -e "$1" ] || return 0
  tc qdisc add dev "$device" root handle e2e: prio bands $((2 + $(count_paths "$@"))) \
    priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 || return 1
  fill_band 2 '' "$@" || return 1
  for match in 'sport 22' "sport $PORT" "dport $PORT"; do
    # shellcheck disable=SC2086 # two words
    choose 1 ip e2e:1 ip protocol 6 0xff match ip $match 0xffff || return 1
  done
  for each; do
    path=${each%.netem}.towards
    [ -e "$path" ] || continue
    bands=$((bands + 1))
    fill_band "$bands" "$each" "$@" || return 1
    # shellcheck disable=SC2013 # words, not lines
    for address in $(cat "$path"); do
      choose 2 ip "e2e:$(printf %x "$bands")" ip dst "$address/32" || return 1
    done
  done
  choose 3 ip e2e:2 u32 0 0 || return 1
  ! grep -q . /proc/net/if_inet6 2>/dev/null || choose 4 ipv6 e2e:2 u32 0 0
}

count_paths() {
  paths=0
  for each; do [ ! -e "${each%.netem}.towards" ] || paths=$((paths + 1)); done
  echo "$paths"
}

# The number of the band, the fault with a direction or nothing, and all faults.
fill_band() {
  parent=e2e:$(printf %x "$1") first=$2
  shift 2
  [ -z "$first" ] || append "$first" || return 1
  for fault; do
    [ -e "${fault%.netem}.towards" ] || append "$fault" || return 1
  done
}

append() {
  number=$((number + 1))
  # shellcheck disable=SC2046 # one word each
  tc qdisc add dev "$device" parent "$parent" handle "e$number:" netem limit 10000 $(cat "$1") || return 1
  parent=e$number:1
}

# The order, the protocol, the band, and what must match.
choose() {
  order=$1 protocol=$2 flow=$3
  shift 3
  tc filter add dev "$device" parent e2e: protocol "$protocol" prio "$order" u32 match "$@" flowid "$flow"
}
