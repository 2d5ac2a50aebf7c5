#!/bin/sh
# A fault: restarts the machine as a power cut does, so that what is only in memory is lost. systemd runs it as root, in
# front of fault-unit.sh. Nothing needs to be healed: the machine boots. Prints why it cannot begin.
# Values: ID; FOLDER.

begin() {
  ! systemd-detect-virt --quiet --container 2>/dev/null ||
    fail "it is a container, which has its computer's kernel"
  [ -w /proc/sysrq-trigger ] || fail 'its kernel has no /proc/sysrq-trigger'
}

# A moment later, for the answer to be sent; the fault's time begins afterwards, so that it can't end before the cut.
# https://docs.kernel.org/admin-guide/sysrq.html: no buffer is written.
keep_doing() {
  sleep 1
  echo b >/proc/sysrq-trigger
}

heal() { :; }

measure() { echo "boot=$(cat /proc/sys/kernel/random/boot_id)"; }
