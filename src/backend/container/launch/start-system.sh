#!/bin/sh
# Makes a machine of a container, then starts systemd in it. The engine runs it at each start, as root and as the
# first process, behind pass-proxy.sh. Prints what keeps it from that, on the console.
# Values: STATE, a folder for what this script keeps. Its file "hosts" has the lines for the cluster's nodes.
# Arguments, if the node is to be offline: this computer's address in the cluster's network, and the ports of the node at
# which this computer may ask.

PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

layer=$(awk '$5 == "/" { print $4, $NF }' /proc/self/mountinfo)

# Docker starts a node again that has rebooted itself. Docker also does so after a crash of this computer, but then a node
# stays off until its user starts it. The file "ran" says where the node ran last, and "wanted" that our program starts it.
boot="$layer $(cat /proc/sys/kernel/random/boot_id)"
ran=$(cat "$STATE/ran" 2>/dev/null)
wanted=$STATE/wanted
case $ran in
  "$boot" | '') ;;
  "$layer "*)
    if [ "${container:-}" = docker ] && [ ! -e "$wanted" ]; then
      rm -f "$STATE/ran"
      echo 'This computer has restarted, so the node waits until it is started once more.'
      exit 0
    fi
    ;;
esac
# After a power-off by force, Docker sees the same as after a reboot by force.
if [ "${container:-}" = docker ] && [ -e "$STATE/off" ] && [ ! -e "$wanted" ]; then
  rm -f "$STATE/off"
  echo 'This node was powered off, so it waits until it is started once more.'
  exit 0
fi
mkdir -p "$STATE"
rm -f "$wanted" "$STATE/off"
echo "$boot" >"$STATE/ran"

# Unless the container is privileged, the engine leaves these unwritable. Both belong to the node alone. The tree of
# control groups 1 is this computer's. Rootless, only the mount may become writable, not the file system.
[ ! -e /sys/fs/cgroup/cgroup.controllers ] || [ -w /sys/fs/cgroup ] || mount -o remount,bind,rw /sys/fs/cgroup || exit
[ -w /proc/sys/net/ipv4/ip_forward ] ||
  for each in /proc/sys/net /proc/sys/fs/mqueue /proc/sys/kernel/*name /proc/sys/kernel/msg* /proc/sys/kernel/sem* /proc/sys/kernel/shm*; do
    mount --bind "$each" "$each" && mount -o remount,bind,rw "$each"
  done

# In a privileged container, this file would reboot this computer.
sysrq=/proc/sysrq-trigger
[ ! -w "$sysrq" ] || { mount --bind "$sysrq" "$sysrq" && mount -o remount,bind,ro "$sysrq"; }

# What engines set for an application's container.
set_network() { [ ! -e "/proc/sys/net/$1" ] || echo "$2" >"/proc/sys/net/$1"; }
set_network ipv4/ip_unprivileged_port_start 1024
set_network ipv6/conf/lo/disable_ipv6 0

# Leaves no way but the one to the other nodes. To this computer goes only what comes from the ports at which it may ask.
# An IPsec policy blocks the rest: every `ip` can set one, and no firewall on a node removes it.
cut_off() {
  host=$1 ipv6=/proc/sys/net/ipv6/conf/eth0/disable_ipv6
  shift
  ip xfrm policy update dir out src 0.0.0.0/0 dst "$host/32" priority 2 action block || return
  for port; do
    ip xfrm policy update dir out src 0.0.0.0/0 dst "$host/32" proto 6 sport "$port" priority 1 || return
  done
  while ip -4 route delete default 2>/dev/null; do :; done
  [ -z "$(ip -4 route show default)" ] || return
  [ ! -e "$ipv6" ] || echo 1 >"$ipv6"
}
[ $# = 0 ] || cut_off "$@" || {
  echo 'This node can not be offline: that needs ip (iproute2) in its image, and IPsec policies in the kernel (modprobe xfrm_user)'
  exit 1
}

# A node has no udev that would make devices. What the engine refuses can't be opened. Without a kernel's log, programs that
# follow it get the console, which says nothing.
[ -e /dev/kmsg ] || ln -s console /dev/kmsg
control=/dev/loop-control
[ -e "$control" ] || mknod "$control" c 10 237 2>/dev/null
# Without the first check, the shell would create a file.
if [ -c "$control" ] && (: <>"$control") 2>/dev/null; then
  for number in $(seq 0 $(($(grep -c " loop[0-9]*\$" /proc/partitions) + 15))); do
    [ -e "/dev/loop$number" ] || mknod -m 660 "/dev/loop$number" b 7 "$number"
  done
else
  rm -f "$control"
fi

# On a machine, services see what is mounted later, and programs run from memory.
mount --make-rshared /
for each in /run /dev/shm; do mount -o remount,bind,exec "$each"; done

first_text() {
  case $1 in
    hosts)
      echo '127.0.0.1 localhost'
      ! grep -q '^0*1 ' /proc/net/if_inet6 2>/dev/null || echo '::1 localhost ip6-localhost ip6-loopback'
      cat "$STATE/hosts"
      ;;
    *) cat "$STATE/given/$1" ;;
  esac
}

# The engine's name servers may have changed since the last start. What the node has added to the file stays.
follow_servers() {
  if [ "$(cat /etc/resolv.conf)" = "$(cat "$1")" ]; then
    cat "$2" >/etc/resolv.conf
    return
  fi
  old=$(sed -n 's/^nameserver //p' "$1" | head -n 1)
  new=$(sed -n 's/^nameserver //p' "$2" | head -n 1)
  [ -z "$old" ] || [ -z "$new" ] || sed -i "s/^nameserver $old\$/nameserver $new/" /etc/resolv.conf
}

# The engine mounts these files, so nobody could replace them, and it forgets what was written to them. Below the mount
# is the node's own file. In a new container of Docker, an empty executable file is in its place; "saved" has what a
# snapshot was made of.
mkdir -p "$STATE/given"
for name in hosts hostname resolv.conf; do
  file=/etc/$name
  cat "$file" >"$STATE/new" 2>/dev/null
  # Nobody answers there, and programs notice at once.
  [ $# = 0 ] || [ "$name" != resolv.conf ] || echo 'nameserver 127.0.0.1' >"$STATE/new"
  umount "$file" 2>/dev/null
  ! grep -q " $file " /proc/self/mountinfo || continue
  if [ ! -e "$STATE/given/$name" ]; then
    cp "$STATE/new" "$STATE/given/$name"
    rm -f "$file"
    first_text "$name" >"$file"
  elif [ ! -L "$file" ] && [ ! -s "$file" ] && { [ ! -e "$file" ] || [ -x "$file" ]; }; then
    rm -f "$file"
    cp -a "$STATE/saved/$name" "$file" 2>/dev/null || first_text "$name" >"$file"
  fi
  [ "$name" != resolv.conf ] || [ ! -f "$file" ] || follow_servers "$STATE/given/$name" "$STATE/new"
  cp "$STATE/new" "$STATE/given/$name"
done
rm -rf "$STATE/new"
pass_proxy /etc/environment

if [ -e "$STATE/saved/details" ] && [ "$layer" != "$(cat "$STATE/saved/layer")" ]; then
  python3 "$STATE/saved/details.py" restore "$STATE/saved/details"
  rm -f "$STATE/saved/details"
fi

exec /sbin/init
