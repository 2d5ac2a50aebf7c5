#!/bin/sh
# Sets SELinux to enforcing, at once and after a reboot. A system with SELinux disabled could only switch with a
# reboot, so this refuses it. Runs on a node as root, behind script-start.sh; prints nothing.

main() {
  command -v getenforce >/dev/null || fail 'this system has no SELinux'
  [ "$(getenforce)" != Disabled ] || fail 'SELinux is disabled in this system'
  setenforce 1
  sed -i 's/^SELINUX=.*/SELINUX=enforcing/' /etc/selinux/config
  [ "$(getenforce)" = Enforcing ] || fail "SELinux is still $(getenforce)"
}
