#!/bin/sh
# Turns a machine that has booted into a template, and each copy of it into a machine of its own. Runs as root. It
# closes everything through which anybody could log in, removes what copies must not share, and reports "ready" on a
# port of the machine. The machine is saved while it waits there. In each copy, it reads a line with a script, runs
# it, and reports "done". Reports "unsuitable" or "failed" with a reason otherwise; without the port, it powers off.
# Values: PORT, the device; FOLDER, where state is kept that the script reads.

set -u
umask 077
timeout 600 systemctl is-system-running --wait >/dev/null 2>&1
tries=0
until [ -c "$PORT" ]; do
  tries=$((tries + 1))
  [ "$tries" -lt 600 ] || exec systemctl poweroff
  sleep 0.1
done
exec 3<>"$PORT"
unsuitable() {
  printf 'unsuitable %s\n' "$1" >&3
  exit 1
}

networking=
if systemctl is-active --quiet NetworkManager.service; then
  unsuitable "NetworkManager configures its network"
elif systemctl is-active --quiet systemd-networkd.service; then
  networking=systemd-networkd
elif command -v ifup >/dev/null; then
  networking=ifupdown
else
  unsuitable "nothing that is known configures its network"
fi
command -v perl >/dev/null || command -v python3 >/dev/null || unsuitable "it has neither perl nor python3"

active() {
  for unit; do
    ! systemctl is-active --quiet "$unit" || printf '%s\n' "$unit"
  done
}
# Without the SSH server, no copy would ever accept a login. It may start later than everything else.
tries=0
until active ssh.socket sshd.socket ssh.service sshd.service >"$FOLDER/login-units" && [ -s "$FOLDER/login-units" ]; do
  tries=$((tries + 1))
  [ "$tries" -lt 300 ] || unsuitable "its SSH server does not run"
  sleep 0.2
done
# shellcheck disable=SC2046 # one word a unit
systemctl stop $(cat "$FOLDER/login-units")
rm -f /etc/ssh/ssh_host_*_key /etc/ssh/ssh_host_*_key.pub

# When the clock of a copy jumps, every timer would be due at once.
systemctl list-units --type=timer --state=active --plain --no-legend | cut -d ' ' -f 1 >"$FOLDER/timers"
# shellcheck disable=SC2046 # one word a unit
[ ! -s "$FOLDER/timers" ] || systemctl stop $(cat "$FOLDER/timers")

# No copy begins with addresses. It gets its own hardware addresses when its driver begins again.
if [ "$networking" = ifupdown ]; then
  ifdown eth0 eth1 >/dev/null 2>&1
  rm -f /var/lib/dhcp/*
else
  systemctl stop systemd-networkd.socket systemd-networkd.service 2>/dev/null
  rm -rf /run/systemd/netif/leases/* /var/lib/systemd/network/*
fi
printf '%s\n' "$networking" >"$FOLDER/networking"
for card in eth0 eth1; do
  ip address flush dev "$card"
  ip link set dev "$card" down
done
for card in /sys/bus/virtio/drivers/virtio_net/virtio*; do
  printf '%s\n' "${card##*/}"
done >"$FOLDER/cards"
[ "$(wc -l <"$FOLDER/cards")" -eq 2 ] || unsuitable "it does not have two network cards"
sync

echo ready >&3
line=
while [ -z "$line" ]; do
  # Ends at once while nobody is connected.
  line=$(head -n 1 <&3)
  [ -n "$line" ] || sleep 0.1
done
printf %s "$line" | base64 -d >"$FOLDER/script"
if sh "$FOLDER/script" >"$FOLDER/log" 2>&1; then
  report='done'
else
  report="failed $(tail -n 1 "$FOLDER/log")"
fi
rm -rf "$FOLDER"
printf '%s\n' "$report" >&3
