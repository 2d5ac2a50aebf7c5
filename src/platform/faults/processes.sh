#!/bin/sh
# A fault: kills or pauses the processes of a service or of a program, or keeps a service dead. systemd runs it as root, in
# front of fault-unit.sh. A service that ran before the fault is started again at its end.
# Values: ID; FOLDER; UNIT, a service, or else PROGRAM, the name of processes; SIGNAL: kill, stop or dead. Prints why it
# cannot begin.

configuration=/run/systemd/system

begin() {
  # shellcheck disable=SC2046 # one word each
  set -- $(pids)
  [ $# -gt 0 ] || fail "${UNIT:-$PROGRAM} does not run on it"
  # The end of one pause would end the other, and a kill would end both.
  for each; do
    ! is_paused "$each" || fail "${UNIT:-$PROGRAM} is paused already, by another fault or by hand"
  done
  echo "$*" >"$FOLDER/$ID.pids"
  services "$@" >"$FOLDER/$ID.units"
  [ "$SIGNAL" = stop ] || while read -r unit; do
    ! is_forgotten "$unit" || fail "$unit could not be started again: systemd forgets it when it ends (systemd-run --collect). Pass --signal stop"
  done <"$FOLDER/$ID.units"
  case $SIGNAL in
    kill)
      signal KILL "$@"
      await_other "$*"
      ;;
    stop) signal STOP "$@" ;;
    dead)
      [ -s "$FOLDER/$ID.units" ] || fail "$PROGRAM belongs to no service that could be kept dead: pass --signal"
      while read -r unit; do keep_dead "$unit"; done <"$FOLDER/$ID.units"
      systemctl daemon-reload
      while read -r unit; do systemctl kill --signal=KILL "$unit"; done <"$FOLDER/$ID.units"
      await_end "$@"
      ;;
  esac
}

heal() {
  # One that has not begun may have met another one's pause.
  [ -e "$FOLDER/$ID.units" ] || return 0
  if [ "$SIGNAL" = stop ]; then
    # shellcheck disable=SC2046 # one word each
    signal CONT $(cat "$FOLDER/$ID.pids" 2>/dev/null) 2>/dev/null
  fi
  while read -r unit; do
    rm -f "$configuration/$unit.d/cluster-e2e-fault-$ID.conf"
    rmdir "$configuration/$unit.d" 2>/dev/null
  done <"$FOLDER/$ID.units"
  [ "$SIGNAL" != dead ] || systemctl daemon-reload
  while read -r unit; do start_again "$unit"; done <"$FOLDER/$ID.units"
  rm -f "$FOLDER/$ID.pids" "$FOLDER/$ID.units"
}

measure() {
  # shellcheck disable=SC2046 # one word each
  set -- $(pids)
  [ $# -gt 0 ] || {
    echo process=dead
    return 0
  }
  if is_paused "$1"; then echo process=paused; else echo process=runs; fi
  echo "pid=$1"
}

is_paused() { grep -q '^State:[[:space:]]*[Tt]' "/proc/$1/status" 2>/dev/null; }

# Those of zombies and of the kernel have no program.
pids() {
  if [ -n "$UNIT" ]; then
    main=$(systemctl show --property MainPID "$UNIT" 2>/dev/null | sed 's/^MainPID=//')
    [ "${main:-0}" -eq 0 ] || echo "$main"
    return 0
  fi
  for each in /proc/[0-9]*/comm; do
    name=
    { read -r name <"$each"; } 2>/dev/null || :
    each=${each%/comm}
    if [ "$name" = "$PROGRAM" ] && readlink "$each/exe" >/dev/null 2>&1; then echo "${each#/proc/}"; fi
  done
}

services() {
  if [ -n "$UNIT" ]; then
    echo "$UNIT"
    return 0
  fi
  for each; do
    sed -n 's|^[^:]*:[^:]*:.*/\([^/]*\.service\)$|\1|p' "/proc/$each/cgroup" 2>/dev/null
  done | sort -u
}

# All processes of a service, which may be more than its main one.
signal() {
  name=$1
  shift
  if [ -n "$UNIT" ]; then
    systemctl kill --signal="$name" "$UNIT"
  elif [ $# -gt 0 ]; then
    kill -s "$name" "$@"
  fi
}

is_forgotten() {
  [ "$(systemctl show --property Transient --property CollectMode "$1" | sort | tr '\n' ' ')" = "CollectMode=inactive-or-failed Transient=yes " ]
}

# As a drop-in, it also has an effect on a service whose file is in /etc.
keep_dead() {
  mkdir -p "$configuration/$1.d"
  printf '[Unit]\nConditionPathExists=!%s\n[Service]\nRestart=no\n' "$FOLDER/$ID.record" \
    >"$configuration/$1.d/cluster-e2e-fault-$ID.conf"
}

# Waits until other processes run: most services are restarted within this time.
await_other() {
  for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    sleep 0.5
    now=$(pids | tr '\n' ' ')
    [ -z "$now" ] || [ "${now% }" = "$1" ] || return 0
  done
}

await_end() {
  for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    left=
    for each; do [ ! -e "/proc/$each/exe" ] || left=$each; done
    [ -n "$left" ] || return 0
    sleep 0.5
  done
}

# Nothing is started while the node shuts down. A failed transient unit is forgotten when it is reset.
start_again() {
  [ "$(systemctl is-system-running 2>/dev/null)" != stopping ] || return 0
  systemctl is-active --quiet "$1" && return 0
  systemctl start "$1" 2>/dev/null && return 0
  systemctl reset-failed "$1" 2>/dev/null
  systemctl start --no-block "$1" || return 0
  for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    ! systemctl is-active --quiet "$1" || return 0
    sleep 0.5
  done
}
