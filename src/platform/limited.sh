#!/bin/sh
# Defines limited, which runs a program as root for at most so many seconds, without input. Behind the limit, nothing
# that it has started is left, also in other sessions, as of su: systemd has them in one control group. $1: the seconds,
# then the program and its arguments. Returns the program's status; 124 or 137 if the limit has ended it.

limited() {
  scope=cluster-e2e-$$-$(tr -d ' .' </proc/uptime)
  limit=$1
  shift
  set -- timeout -k 5 "$limit" "$@"
  if [ -d /run/systemd/system ] && [ "$(id -u)" = 0 ]; then
    set -- systemd-run --quiet --scope "--unit=$scope" "$@"
  fi
  "$@" </dev/null
  set -- $?
  case $1 in 124 | 137) systemctl kill --signal=KILL "$scope.scope" 2>/dev/null ;; esac
  return "$1"
}
