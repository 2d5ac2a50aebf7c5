#!/bin/sh
# Watches a node until its stdin ends, because the computer that watches may be gone. Runs as root on a node, behind
# limited.sh. Its first line of stdin is an expression for grep that selects lines of the journal; for each further
# line, a word, it looks once more, and writes the word into the journal, so that it comes behind everything that was
# there before. It prints those lines of the journal, which begin with a digit or a space, and:
#
#     boot ID                           differs from boot to boot; a container has its computer's, so there is more
#     facts {"name": …}                 what a platform that is a folder says about itself
#     cursor ID                         from where to go on after a lost connection; again every minute
#     ready
#     tick SECONDS UPTIME UPTIME KILLS FAILURES
#                                       the clock, the uptime before and after; OOM kills so far, and a number that is
#                                       another one if any of them was in this container
#     watch STATUS LINE                 of the platform's program, if it fails, or failed the last time
#     mark WORD                         if the journal can't have the word
#
# Values: CURSOR of the journal, or empty; FACTS, a file; PLATFORM, the folder of the platform; WATCH_SECONDS, the
# program's time limit.

command -v journalctl >/dev/null || exit 127
form=short-iso-precise
journalctl -q -n 0 -o "$form" >/dev/null 2>&1 || form=short-iso
cursor_now() { journalctl --no-pager -q -n 1 -o export 2>/dev/null | sed -n -e 's/^__CURSOR=//p' -e 1q; }
[ -n "$CURSOR" ] || CURSOR=$(cursor_now)
echo "boot $(cat /proc/sys/kernel/random/boot_id) $(cut -d ' ' -f 22 /proc/1/stat)"
[ ! -r "$FACTS" ] || printf 'facts %s\n' "$(head -c 16384 "$FACTS" | tr -d '\n')"
echo "cursor $CURSOR"
IFS= read -r expression || exit 0

# The counters of a container. Elsewhere the kernel's log says more.
counters=
if [ -e /.dockerenv ] || [ -e /run/.containerenv ] || tr '\0' '\n' </proc/1/environ 2>/dev/null | grep -q '^container='; then
  group=$(sed -n 's/^[0-9]*:\([^:]*,\)\{0,1\}memory[^:]*:\(.*\)/\2/p' /proc/1/cgroup | sed 's,/init\.scope$,,')
  for each in /sys/fs/cgroup/memory.events "/sys/fs/cgroup/memory${group:-/none}"; do
    [ -n "$counters" ] || [ ! -e "$each" ] || counters=$each
  done
fi
# Control groups of version 1 lose the kills of a unit when it has ended, so there it takes all kills on the computer. A
# kill in this container comes right behind a failure at its limit, hence the order.
kills() {
  kills=0 failures=0
  case $counters in
    *.events) kills=$(sed -n 's/^oom_kill //p' "$counters") failures=$kills ;;
    ?*)
      kills=$(sed -n 's/^oom_kill //p' /proc/vmstat)
      for each in memory memory.memsw; do
        read -r count <"$counters/$each.failcnt" && failures=$((failures + count))
      done 2>/dev/null
      ;;
  esac
  echo "${kills:-0} ${failures:-0}"
}
tick() {
  read -r before _ </proc/uptime
  now=$(date +%s.%N)
  read -r after _ </proc/uptime
  echo "tick $now $before $after $(kills)"
}
ticks() {
  count=0
  while sleep 3 >/dev/null && tick; do
    count=$((count + 1))
    [ $((count % 20)) -ne 0 ] || echo "cursor $(cursor_now)"
  done
}
run_program() {
  # shellcheck source=/dev/null
  (cd "$PLATFORM/folder" && . "$PLATFORM/environment" && limited "$WATCH_SECONDS" ./watch || echo "=1") 2>&1 | tail -c 2000
}
programs() {
  last=0
  while [ -x "$PLATFORM/folder/watch" ]; do
    output=$(run_program 4>&-)
    status=${output##*=}
    if [ "$status" != 0 ] || [ "$last" != 0 ]; then
      printf 'watch %s %s\n' "$status" "$(printf '%s' "${output%=*}" | awk 'NF { line = $0 } END { print line }')"
    fi
    last=$status
    sleep 2 >/dev/null
  done
}

exec 3<&0 4>&1
# What comes after the first look at the counters is known. The command begins when the node is ready.
tick
{
  # shellcheck disable=SC2086 # two words, or none
  journalctl --no-pager -q -a -f -o "$form" ${CURSOR:+--no-tail "--after-cursor=$CURSOR"} 3<&- 4>&- &
  children=$!
  ticks >&4 3<&- &
  children="$children $!"
  programs >&4 3<&- &
  children="$children $!"
  echo ready >&4
  while IFS= read -r word <&3; do
    tick >&4
    timeout 5 logger -t cluster-e2e -- "$word" 2>/dev/null || echo "mark $word" >&4
  done
  # shellcheck disable=SC2086 # one word each
  kill $children 2>/dev/null
} | LC_ALL=C grep -a -i -E --line-buffered -e "$expression" 3<&- 4>&-
