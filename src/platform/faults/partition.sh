#!/bin/sh
# A fault: drops everything that arrives from some nodes. systemd runs it as root, in front of fault-unit.sh. Nothing
# else is touched, so logins from other computers continue, and so does what the installer's server sends and receives.
# Values: ID; SOURCES, IPv4 addresses; PORT, of that server. Prints why it cannot begin.

table=cluster_e2e_$ID
chain=e2e-$ID

begin() {
  # Before connections are tracked and addresses are translated, so forwarded packets are dropped as well.
  if command -v nft >/dev/null; then
    nft -f - <<END || fail 'nft cannot filter packets: does the kernel have nf_tables?'
table ip $table {
  chain arriving {
    type filter hook prerouting priority -300
    tcp sport $PORT accept
    tcp dport $PORT accept
    ip saddr { $(echo "$SOURCES" | sed 's/ /, /g') } drop
  }
}
END
  elif command -v iptables >/dev/null; then
    {
      iptables -w -t raw -N "$chain" &&
        iptables -w -t raw -A "$chain" -p tcp --sport "$PORT" -j RETURN &&
        iptables -w -t raw -A "$chain" -p tcp --dport "$PORT" -j RETURN &&
        for source in $SOURCES; do iptables -w -t raw -A "$chain" -s "$source" -j DROP || return 1; done &&
        iptables -w -t raw -I PREROUTING -j "$chain"
    } || fail 'iptables cannot filter packets: does the kernel have iptable_raw?'
  else
    fail 'it has neither nft nor iptables: install the package nftables on it'
  fi
}

heal() {
  ! command -v nft >/dev/null || nft delete table ip "$table" 2>/dev/null
  ! command -v iptables >/dev/null || {
    iptables -w -t raw -D PREROUTING -j "$chain"
    iptables -w -t raw -F "$chain"
    iptables -w -t raw -X "$chain"
  } 2>/dev/null
}
