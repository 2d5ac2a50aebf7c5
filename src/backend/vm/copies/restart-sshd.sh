#!/bin/sh
# Runs as root on copies of machines: lets sshd begin again with its new host key, and waits until it listens. sshd
# removes its PID file when it begins, and writes it when it listens. A restart by systemd starts more programs, which
# takes a translated machine twice as long; it serves where there is no such file.
# Values: PID_FILE.

if read -r sshd <"$PID_FILE" && read -r name <"/proc/$sshd/comm" && [ "$name" = sshd ] &&
  rm -f -- "$PID_FILE" && kill -HUP "$sshd"; then
  tries=0
  while [ "$tries" -lt 200 ]; do
    [ ! -s "$PID_FILE" ] || exit 0
    sleep 0.05
    tries=$((tries + 1))
  done
fi 2>/dev/null
systemctl restart ssh.service 2>/dev/null || systemctl restart sshd.service
