#!/bin/sh
# A fault: drops everything that arrives from some nodes. systemd runs it as root, in front of fault-unit.sh. Nothing
# else is touched, so logins from other computers continue, and so does what the installer's server sends and receives.
# Values: ID; SOURCES, IPv4 addresses; PORT, of that server. Prints why it cannot begin.

PATH=$PATH:/usr/sbin:/sbin
table=cluster_e2e_$ID
chain=e2e-$ID
lack='nft and iptables are missing: install the package nftables on the node'

# The hardware addresses of the nodes that are on the same network: a node may also send from addresses that move
# between nodes, and over IPv6. One that the way to other networks has too, as behind a proxy of addresses, is not used.
find_hardware() {
  # shellcheck disable=SC2153 # a value
  for source in $SOURCES; do ping -c 1 -W 1 "$source" >/dev/null 2>&1 & done
  wait
  gateway=$(ip -4 route show default 2>/dev/null | sed -n 's/^default via \([0-9.]*\) .*/\1/p' | head -n 1)
  for source in $SOURCES; do hardware_of "$source"; done | sort -u | grep -vxF "$(hardware_of "${gateway:-none}" | grep . || echo none)"
}

hardware_of() { ip -4 neigh show 2>/dev/null | sed -n "s/^$1 dev .* lladdr \\([0-9a-f:]*\\).*/\\1/p"; }

one_of() { echo "{ $(echo "$1" | tr '\n ' ',,' | sed 's/,$//') }"; }

# Before connections are tracked and addresses are translated, so forwarded packets are dropped as well.
nft_table() {
  printf '%s\n' "table $1 $table {
  chain arriving {
    type filter hook prerouting priority -300
    tcp sport $PORT accept
    tcp dport $PORT accept
    $2
    ${hardware:+ether saddr $(one_of "$hardware") drop}
  }
}" | nft -f -
}

ip_chain() {
  program=$1 sources=$2
  "$program" -w -t raw -N "$chain" &&
    "$program" -w -t raw -A "$chain" -p tcp --sport "$PORT" -j RETURN &&
    "$program" -w -t raw -A "$chain" -p tcp --dport "$PORT" -j RETURN &&
    for source in $sources; do "$program" -w -t raw -A "$chain" -s "$source" -j DROP || return 1; done &&
    for address in $hardware; do "$program" -w -t raw -A "$chain" -m mac --mac-source "$address" -j DROP || return 1; done &&
    "$program" -w -t raw -I PREROUTING -j "$chain"
}

filter_with_nft() {
  nft_table ip "ip saddr $(one_of "$SOURCES") drop" || return 1
  [ -z "$has_ipv6" ] || nft_table ip6 ''
}

filter_with_iptables() {
  ip_chain iptables "$SOURCES" || return 1
  [ -z "$has_ipv6" ] || ip_chain ip6tables ''
}

begin() {
  hardware=$(find_hardware)
  has_ipv6=
  [ -z "$hardware" ] || ! grep -q . /proc/net/if_inet6 2>/dev/null || has_ipv6=yes
  if command -v nft >/dev/null; then
    filter_with_nft || fail 'nft cannot filter packets: does the kernel have nf_tables?'
  elif command -v iptables >/dev/null; then
    filter_with_iptables || fail 'iptables cannot filter packets: does the kernel have iptable_raw?'
  else
    fail "$lack"
  fi
}

measure() { command -v nft >/dev/null || command -v iptables >/dev/null || echo "lack=$lack"; }

heal() {
  for family in ip ip6; do
    ! command -v nft >/dev/null || nft delete table "$family" "$table" 2>/dev/null
  done
  for program in iptables ip6tables; do
    ! command -v "$program" >/dev/null || {
      "$program" -w -t raw -D PREROUTING -j "$chain"
      "$program" -w -t raw -F "$chain"
      "$program" -w -t raw -X "$chain"
    } 2>/dev/null
  done
  ! is_there
}

is_there() {
  for family in ip ip6; do ! nft list table "$family" "$table" || return 0; done
  for program in iptables ip6tables; do ! "$program" -w -t raw -S "$chain" || return 0; done
  return 1
} >/dev/null 2>&1
