#!/bin/sh
# Makes a copy of a template a machine of its own, before anybody can log in to it. The template's agent runs it as
# root. Whatever a first boot sets, it sets; whatever the template's first boot has named otherwise, it renames.
# Values: NOW, the time in seconds; ENTROPY, random bytes in base64, and RESEED, a script for them; NAME, MACHINE_ID, BOOT_ID and INSTANCE, the node's
# names; RENEW_NAMES, a script for others; OLD_INSTANCE, the template's; OLD_TEXTS, a pattern for the texts of files to rename, and RENAMING, the sed
# script that does; ADD_HOSTS and SET_DEADLINE, scripts; LOGIN, LOGIN_KEY, HOST_KEY and HOST_KEY_PUBLIC, who may log
# in, with which key, to which key; FOLDER, the agent's.

set -eu
umask 077
echo "$ENTROPY" | sh -c "$RESEED"
date --set="@$NOW" >/dev/null
[ ! -e /var/lib/systemd/random-seed ] || head -c 512 /dev/urandom >/var/lib/systemd/random-seed

for file in /etc/machine-id /var/lib/dbus/machine-id; do
  [ ! -f "$file" ] || [ -L "$file" ] || printf '%s\n' "$MACHINE_ID" >"$file"
done
sh -c "$RENEW_NAMES"
printf '%s\n' "$BOOT_ID" >"$FOLDER/boot-id"
chmod 444 "$FOLDER/boot-id"
mount --bind "$FOLDER/boot-id" /proc/sys/kernel/random/boot_id
printf '%s\n' "$NAME" >/proc/sys/kernel/hostname
mv "/var/lib/cloud/instances/$OLD_INSTANCE" "/var/lib/cloud/instances/$INSTANCE"
rm -f "/var/lib/cloud/instances/$INSTANCE"/*.txt "/var/lib/cloud/instances/$INSTANCE"/*.txt.i
ln -sfn "/var/lib/cloud/instances/$INSTANCE" /var/lib/cloud/instance
grep -rlIE "$OLD_TEXTS" /etc/netplan /etc/network /etc/systemd/network /etc/udev/rules.d /etc/hosts /etc/hostname \
  /run/systemd/network /run/udev/rules.d /run/cloud-init /run/network /var/lib/cloud/data \
  "/var/lib/cloud/instances/$INSTANCE" /var/log/cloud-init.log /var/log/cloud-init-output.log 2>/dev/null | xargs sed -i -E "$RENAMING"
sh -c "$ADD_HOSTS"
sh -c "$SET_DEADLINE"
for log in auth.log daemon.log kern.log messages secure syslog; do
  [ ! -f "/var/log/$log" ] || : >"/var/log/$log"
done
systemctl restart systemd-journald.service
find /run/log/journal /var/log/journal -mindepth 1 -maxdepth 1 ! -name "$MACHINE_ID" -exec rm -rf {} + 2>/dev/null || :

udevadm control --reload
while read -r card; do
  echo "$card" >/sys/bus/virtio/drivers/virtio_net/unbind
  echo "$card" >/sys/bus/virtio/drivers/virtio_net/bind
done <"$FOLDER/cards"
udevadm settle --timeout=60
case $(cat "$FOLDER/networking") in
  ifupdown) ifup eth0 eth1 ;;
  *) systemctl start systemd-networkd.service ;;
esac
tries=0
for card in eth0 eth1; do
  until ip -4 -o address show dev "$card" | grep -q inet; do
    tries=$((tries + 1))
    [ "$tries" -lt 600 ] || { echo "$card has no address" && exit 1; }
    sleep 0.1
  done
done

home=$(getent passwd "$LOGIN" | cut -d : -f 6)
mkdir -p "$home/.ssh"
printf '%s\n' "$LOGIN_KEY" >"$home/.ssh/authorized_keys"
chown -R "$LOGIN:" "$home/.ssh"
host=/etc/ssh/ssh_host_ed25519_key
printf '%s\n' "$HOST_KEY" >"$host"
printf '%s\n' "$HOST_KEY_PUBLIC" >"$host.pub"
chmod 644 "$host.pub"
# shellcheck disable=SC2046 # one word a unit
systemctl start $(cat "$FOLDER/login-units")
! [ -d /var/lib/systemd/timers ] || find /var/lib/systemd/timers -type f -exec touch {} +
# shellcheck disable=SC2046 # one word a unit
[ ! -s "$FOLDER/timers" ] || systemctl start --no-block $(cat "$FOLDER/timers")
sync
