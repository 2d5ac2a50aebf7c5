#!/bin/sh
# Tells a node's clock, and shifts it. Runs as root on a node, by bash if that is there, which reads the clock without
# starting a program. A shift reads and sets the clock in one process if there is perl or python3; date takes the time
# from this script, and on a busy node starts a tenth of a second later or more. Stdin: lines that are "ask", or a number
# of nanoseconds to add to the clock. Prints a line for each: the time in seconds with a fraction and by how many seconds
# faults have set the clock ahead, "set", or "failed".
# Values: FAULTS, the folder of clock.sh, whose idea of the true time is shifted too.

LC_ALL=C
# Two commands that set a clock at once would take each other's shifts for lateness. A holder whose computer is gone is
# not waited for.
if command -v flock >/dev/null && [ -d /run ]; then
  exec 9</run
  flock -w 30 9 || :
fi
# The numbers of the system calls clock_settime and clock_gettime.
case $(uname -m) in
  x86_64) calls='227 228' ;;
  aarch64) calls='112 113' ;;
  *) calls= ;;
esac
by_perl() {
  # shellcheck disable=SC2086 # two words
  [ -n "$calls" ] && perl -e 'use integer; my ($set, $get, $add) = map { $_ + 0 } @ARGV; my $t = pack "qq", 0, 0;
    syscall($get, 0, $t) == 0 or exit 1; my ($s, $n) = unpack "qq", $t; $n += $s * 1000000000 + $add;
    $t = pack "qq", $n / 1000000000, $n % 1000000000; exit(syscall($set, 0, $t) == 0 ? 0 : 1)' $calls "$1" 2>/dev/null
}
by_python() {
  python3 -c 'import sys, time; time.clock_settime_ns(0, time.clock_gettime_ns(0) + int(sys.argv[1]))' "$1" 2>/dev/null
}
by_date() {
  if [ -n "${EPOCHREALTIME-}" ]; then
    now=$EPOCHREALTIME
    now=${now%.*}${now#*.}000
  else
    now=$(date +%s%N)
  fi
  then=$((now + $1))
  fraction=$((then % 1000000000 + 1000000000))
  date "--set=@$((then / 1000000000)).${fraction#1}" >/dev/null
}
# No program is started, because the time until the answer counts.
ahead() {
  sum=0
  for each in "$FAULTS"/*.offset; do
    [ ! -e "$each" ] || ! read -r seconds _ <"$each" || sum=$((sum + seconds))
  done
  echo "$1 $sum"
}
shift_base() {
  [ -e "$FAULTS/clock.base" ] || return 0
  awk -v nanoseconds="$1" '{ printf "%.3f\n", $1 + nanoseconds / 1000000000 }' "$FAULTS/clock.base" \
    >"$FAULTS/clock.base.new" && mv -f "$FAULTS/clock.base.new" "$FAULTS/clock.base"
}
while read -r word; do
  if [ "$word" = ask ]; then
    if [ -n "${EPOCHREALTIME-}" ]; then ahead "$EPOCHREALTIME"; else ahead "$(date +%s.%N)"; fi
  elif by_perl "$word" || by_python "$word" || by_date "$word"; then
    shift_base "$word"
    echo 'set'
  else
    echo failed
  fi
done
