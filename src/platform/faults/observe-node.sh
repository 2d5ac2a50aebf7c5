#!/bin/sh
# Observes what faults do to a node. Runs as root behind script-start.sh. Its arguments are IPv4 addresses of other
# nodes, which it pings all at once. Prints lines "key=value":
#
#     fault=0123abcd 57 {"kind": …}   a fault that the node has: its id, the seconds left, and its record
#     clock=1700000000.123            the node's clock
#     free=4096                       and the like: what the fault's own function "measure" prints
#     link=10.0.0.2 0.123             milliseconds of the fastest round trip to that node; "lost": there was none
#
# Values: FOLDER; MEASURE, not empty if the text of a fault stands in front; TRIES for each, and LIMIT, seconds for an
# answer.

main() {
  for record in "$FOLDER"/*.record; do
    [ -e "$record" ] || continue
    id=${record##*/}
    left=$(($(head -n 1 "$record") - $(cut -d . -f 1 /proc/uptime)))
    printf 'fault=%s %s %s\n' "${id%.record}" "$((left > 0 ? left : 0))" "$(sed -n 2p "$record" | head -c 16384)"
  done
  printf 'clock=%s\n' "$(date +%s.%N)"
  [ -z "$MEASURE" ] || measure
  [ $# -eq 0 ] || command -v ping >/dev/null || fail 'it has no ping: install the package iputils-ping (iputils)'
  for address; do (try_link "$address") & done
  wait
}

# iputils says "rtt min/avg/max/mdev", inetutils "round-trip min/avg/max/stddev", and busybox "round-trip min/avg/max".
try_link() {
  took=$(ping -q -c "$TRIES" -i 0.2 -W "$LIMIT" "$1" 2>/dev/null | sed -n 's|^r[a-z-]* min/avg/max[a-z/]* = \([0-9.]*\)/.*|\1|p' || :)
  printf 'link=%s %s\n' "$1" "${took:-lost}"
}
