#!/bin/sh
# Gives a node names where this computer's only name servers have IPv6 addresses: DHCP names 10.0.2.3, at which QEMU then
# doesn't answer, and fec0::3 answers. cloud-init runs it as root at every boot. Prints what failed.
# Values: HAS_ROUTE, whether this computer has a way out for IPv6: yes or no.

ip -6 address replace fec0::15/64 dev eth0 nodad
# QEMU announces a way out that leads nowhere then. This route is better, and refuses at once.
[ "$HAS_ROUTE" = yes ] || ip -6 route replace unreachable default metric 1
if systemctl is-active --quiet systemd-resolved.service; then
  mkdir -p /run/systemd/resolved.conf.d
  printf '[Resolve]\nDNS=fec0::3 10.0.2.3\nDomains=~.\n' >/run/systemd/resolved.conf.d/cluster-e2e.conf
  systemctl restart systemd-resolved.service
else
  # Whatever configures the network could replace the file, but not a mount.
  [ -e /etc/resolv.conf ] || : >/etc/resolv.conf
  umount /etc/resolv.conf 2>/dev/null
  mkdir -p /run/cluster-e2e-names
  { echo nameserver fec0::3 && grep -v '^nameserver fec0::3$' /etc/resolv.conf; } >/run/cluster-e2e-names/resolv.conf
  chcon --reference=/etc/resolv.conf /run/cluster-e2e-names/resolv.conf 2>/dev/null
  mount --bind /run/cluster-e2e-names/resolv.conf /etc/resolv.conf
fi
