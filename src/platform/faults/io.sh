#!/bin/sh
# A fault: the device below a folder's file system stalls, is slow, or fails. systemd runs it as root, in front of
# fault-unit.sh. The device must be one of device mapper, such as a logical volume: its table is replaced while the file
# system is in use. Nobody's data changes.
# Values: ID; FOLDER; IO, the folder; STALL, yes or empty; SLOW in milliseconds, or 0; UP and DOWN, the seconds in which
# it works and fails in turn, or 0 and 0. Prints why it cannot begin.

PATH=$PATH:/usr/sbin:/sbin
lack='dmsetup is missing: install the package dmsetup (device-mapper on relatives of Red Hat)'

begin() {
  [ -d "$IO" ] || fail "it has no folder $IO"
  command -v dmsetup >/dev/null || fail "$lack"
  find_device || fail "$IO is not on a device of device mapper. Mount a logical volume there, or a device that dmsetup makes of a file"
  for each in / /etc /home /root /usr /var /var/log; do
    [ "$(stat -c %d "$each")" != "$(stat -c %d "$IO")" ] ||
      fail "$IO is on the disk of $each, without which nobody could log in or end the fault"
  done
  table=$FOLDER/$ID.table
  dmsetup table "$device" >"$table"
  if is_suspended || awk '$3 != "linear" { other = 1 } END { exit !other }' "$table"; then
    rm -f "$table"
    fail "$device is not a plain volume, or has a fault already"
  fi
  echo "$device" >"$FOLDER/$ID.device"
  if [ -n "$STALL" ]; then
    dmsetup suspend --noflush --nolockfs "$device"
  elif [ "$SLOW" -gt 0 ]; then
    awk -v more="$SLOW" '{ $3 = "delay"; print $0, more }' "$table" | exchange
  else
    awk -v more="$UP $DOWN" '{ $3 = "flakey"; print $0, more }' "$table" | exchange
  fi || fail 'its device cannot be changed: does the kernel have dm-delay and dm-flakey?'
}

heal() {
  [ -e "$FOLDER/$ID.device" ] || return 0
  device=$(cat "$FOLDER/$ID.device")
  exchange <"$FOLDER/$ID.table" && rm -f "$FOLDER/$ID.device" "$FOLDER/$ID.table"
}

# A device that keeps its table goes on as well, but that is a failure.
exchange() {
  loaded=no
  if dmsetup reload "$device"; then
    loaded=yes
    dmsetup suspend --noflush --nolockfs "$device"
  fi
  dmsetup resume --noudevsync "$device" && [ "$loaded" = yes ]
}

find_device() {
  source=$(findmnt --noheadings --output SOURCE --target "$IO" | tail -n 1)
  device=$(dmsetup info --columns --noheadings --options name "$source" 2>/dev/null)
}

is_suspended() { dmsetup info --columns --noheadings --options suspended "$device" | grep -q Suspended; }

# What the device is, and how many microseconds a read takes that no cache answers: "stalled" if it does not end, "failed"
# if it fails. A device that fails in turn is read until it does.
measure() {
  command -v dmsetup >/dev/null || echo "lack=$lack"
  find_device || {
    echo io=unknown
    return 0
  }
  target=$(dmsetup table "$device" | awk '{ print $3; exit }') tries=1
  ! is_suspended || target=suspended
  [ "$target" != flakey ] || tries=100
  until try_read || [ "$tries" -le 1 ]; do
    tries=$((tries - 1))
    sleep 0.2
  done
  printf 'target=%s\nio=%s\n' "$target" "$found"
  case ,$(findmnt --noheadings --output OPTIONS --target "$IO" | tail -n 1), in *,ro,*) echo mode=ro ;; esac
}

# Succeeds unless the device could be read. A program that waits for a stalled device cannot be ended: nobody waits for
# it, and by exec, its shell keeps no copy of the output that somebody reads to its end.
try_read() {
  result=$(mktemp -p /run)
  ( (exec </dev/null >"$result" 2>/dev/null && timed_read) &)
  # Whatever else keeps the computer busy.
  left=200
  [ "$target" != suspended ] || left=20
  while [ ! -s "$result" ] && [ "$left" -gt 0 ]; do
    left=$((left - 1))
    sleep 0.1
  done
  found=$(cat "$result")
  rm -f "$result"
  found=${found:-stalled}
  case $found in *[!0-9]*) return 0 ;; *) return 1 ;; esac
}

timed_read() {
  began=$(date +%s%N)
  if dd if="/dev/mapper/$device" of=/dev/null bs=4096 count=1 iflag=direct; then
    echo $((($(date +%s%N) - began) / 1000))
  else
    echo failed
  fi
}
