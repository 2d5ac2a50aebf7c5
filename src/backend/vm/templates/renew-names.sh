#!/bin/sh
# Gives a copy of a template other identifiers than the template's, as systemd's "Safely Building Images" requires of
# images, beside those that become-node.sh sets. Runs as root, before the network and logins begin. What a system makes
# again by itself is removed; the others keep their form. Prints nothing.
# Values: ROOT, the root folder; UUID, a new one.

set -e
cd "$ROOT"
# What DHCP clients call themselves, and were given: dhclient, dhcpcd, NetworkManager, systemd-networkd.
rm -rf -- var/lib/dhcp/* var/lib/dhclient/* var/lib/dhcpcd/* var/lib/dhcpcd5/* var/db/dhcpcd/* etc/dhcpcd.duid etc/dhcpcd.secret \
  var/lib/NetworkManager/secret_key var/lib/NetworkManager/*.lease var/lib/systemd/network/* run/systemd/netif/leases/*
rm -rf -- var/lib/systemd/credential.secret var/lib/libuuid/clock.txt \
  boot/loader/random-seed boot/efi/loader/random-seed efi/loader/random-seed
id=$(echo "$UUID" | tr -d -)
# Such as InitiatorName=iqn.1993-08.org.debian:01:0123456789ab
file=etc/iscsi/initiatorname.iscsi
[ ! -f "$file" ] || sed -i -E "s/^(InitiatorName=.*:)[^:]*\$/\\1$(echo "$id" | cut -c 1-12)/" "$file"
[ ! -f etc/nvme/hostnqn ] || echo "nqn.2014-08.org.nvmexpress:uuid:$UUID" >etc/nvme/hostnqn
[ ! -f etc/nvme/hostid ] || echo "$UUID" >etc/nvme/hostid
# What gethostid returns.
[ ! -f etc/hostid ] || head -c 4 /dev/urandom >etc/hostid
