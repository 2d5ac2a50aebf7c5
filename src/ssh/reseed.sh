#!/bin/sh
# Gives a machine that continues from saved memory other random numbers than all that continue from the same memory. Runs
# as root before anything else of ours. Prints why, and fails, unless the kernel is known to use the new randomness at
# once: it was asked to, it has noticed by itself that the machine is a copy, or it is so old that it mixes at once.
# Stdin: a line with randomness in base64.

read -r entropy
printf %s "$entropy" | base64 -d >/dev/urandom || exit
perl -e 'open my $f, ">", "/dev/urandom" or exit 1; ioctl $f, 0x5207, 0 or exit 1' 2>/dev/null && exit
for python in python3 python python2 /usr/libexec/platform-python; do
  "$python" -c 'import fcntl, os; fcntl.ioctl(os.open("/dev/urandom", os.O_WRONLY), 0x5207)' 2>/dev/null && exit
done
for device in /sys/bus/*/drivers/vmgenid/*:*; do [ ! -e "$device" ] || exit 0; done
version=$(uname -r)
major=${version%%.*} rest=${version#*.}
minor=${rest%%[!0-9]*}
[ "$major" -lt 4 ] || { [ "$major" -eq 4 ] && [ "$minor" -lt 8 ]; } || {
  echo "its random numbers would repeat, because it has neither perl nor python, and a kernel without vmgenid" >&2
  exit 1
}
