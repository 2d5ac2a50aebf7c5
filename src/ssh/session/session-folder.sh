#!/bin/sh
# Functions for the folder through which a session with a terminal gets its script; $1 is the session's token. They
# run as the login user.

# Prefers memory to disk, if there is a memory folder that everyone may write to.
choose_folder() {
  d=/dev/shm
  [ -w "$d" ] || d=/tmp
  d=$d/$1
}

# wait_until TEST: waits two seconds in small steps, then up to two minutes in larger ones.
wait_until() {
  i=0
  until [ "$@" ]; do
    i=$((i + 1))
    [ "$i" -lt 700 ] || exit 255
    if [ "$i" -lt 100 ]; then sleep 0.02; else sleep 0.2; fi
  done
}
