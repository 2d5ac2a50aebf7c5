#!/bin/sh
# Collects everything that `wait` needs from a node, in one round trip. Runs as root, behind find-layout.sh and
# limited.sh. $2: how often to run a check that passes; $3: the sum of the answer that is known already, or "-"; $4:
# for how many seconds a node that has no other answer looks again, unless it is ready or has failed; $5: the longest
# limit for one check that is waited for. It prints lines "key=value"; after "log=" and "check=" come whole lines of
# text, until that list ends:
#
#     seen=4038471504-75        the sum of all that follows
#     layout=cluster            empty if no installation has started
#     status=exit 0             status of the install script; or "running", or empty
#     unit=active               systemd's ActiveState of the install unit; empty if systemd does not answer
#     setup.NAME=failed         ActiveState of a unit that continues after the install script
#     check.status=1            exit status of the node's own check; empty while that program doesn't exist
#     check.limit=90            the check's limit in seconds, if it is longer than $5: then the check has not run
#     config={"ssl_enabled": …} the platform's own TLS setting, in one line
#     facts={"name": …}         what a platform that is a folder says about itself, in one line
#     check=…                   the check's output
#     log=…                     the last lines of the install log, if the installation failed
#
# Values: STATUS_FILE, LOG_FILE and UNIT of the installation; CHECK_SECONDS, the limit for a check whose platform
# names none; TIMED_OUT, the status of a check that exceeds it; TAIL_LINES and TAIL_BYTES of a log; for each layout, SETUP_UNITS_<name>, CONFIG_FILE_<name>, CHECKS_<name>, one command a line,
# newest first, WRAPPER_<name>, a program that runs them, if the node has it, and FACTS_FILE_<name>, which may be empty.

LC_ALL=C
export LC_ALL
state_of() { systemctl show -p ActiveState "$1" 2>/dev/null | sed 's/^ActiveState=//'; }
lines_of() { sed "s/^/$1=/"; }
# Not echo: in some shells, it turns \n into a line break.
say() { printf '%s=%s\n' "$1" "$(printf '%s' "$2" | tr -d '\n')"; }

looks=${2:-1}
known=${3:--}
most_seconds=${5:-$CHECK_SECONDS}
# A check that outlives its limit has the status 124, even if it had to be killed: then timeout itself ends with 137.
run_once() {
  started=$(uptime_now)
  output=$(limited "$seconds" "$@")
  result=${output##*=}
  output=$(printf '%s' "${output%=*}")
  [ "$result" != 137 ] || [ $(($(uptime_now) - started)) -lt $((seconds * 100)) ] || result=$TIMED_OUT
}
run_check() {
  run_once "$@"
  while [ "$result" = 0 ] && [ "$looks" -gt 1 ]; do
    run_once "$@"
    looks=$((looks - 1))
  done
  [ "$result" != 0 ] || is_ready=yes
  say check.status "$result"
  printf '%s\n' "$output" | lines_of check
}

# The limit that a platform's facts name. A quotation mark inside of a text has a backslash there.
own_limit() { sed -n 's/.*"checkTimeout": *"\([1-9][0-9]\{0,2\}\)s".*/\1/p' "$1" 2>/dev/null | head -n 1; }

line_break='
'
# Runs the first check whose program exists, through the wrapper if the node has it.
check_node() {
  [ -z "$facts_file" ] || limit=$(own_limit "$facts_file")
  limit=${limit:-$CHECK_SECONDS}
  rest=$checks$line_break
  while [ -n "$rest" ]; do
    arguments=${rest%%"$line_break"*} rest=${rest#*"$line_break"}
    program=${arguments%% *} arguments=${arguments#"$program"}
    [ -x "$program" ] || continue
    [ "$limit" -le "$most_seconds" ] || { say check.limit "$limit" && has_more=yes && break; }
    seconds=$limit
    [ ! -x "$wrapper" ] || arguments="$program $arguments" program=$wrapper
    # shellcheck disable=SC2086 # one word each
    run_check "$program" $arguments
    break
  done
}

# Prints the whole answer. Succeeds if looking again would not change it soon: the node is ready, has failed,
# or must be asked with more time.
look() {
  is_ready=no has_more=no limit=''
  status=$(head -c 100 "$STATUS_FILE" 2>/dev/null || :)
  state=$(state_of "$UNIT")
  # The status is written before the unit ends, so a second reading is at least as recent as the unit's state.
  [ "$status" != running ] || [ "$state" = active ] || status=$(head -c 100 "$STATUS_FILE" 2>/dev/null || :)
  # A machine that was restarted during the installation resumes it automatically, but not at once.
  [ "$status:$state" != running:inactive ] || ! systemctl is-enabled --quiet "$UNIT" 2>/dev/null || state=activating
  # shellcheck disable=SC2154 # find-layout.sh sets it
  say layout "$layout"
  say status "$status"
  say unit "$state"
  failed=no
  case $status in '' | running | 'exit 0') ;; *) failed=yes ;; esac
  # systemd may not answer for a moment, such as while it is upgraded itself.
  case $status:$state in running:active | running:activating | running:) ;; running:*) failed=yes ;; esac
  for each in $LAYOUTS; do
    [ "$each" = "$layout" ] || continue
    setup_units='' config_file='' wrapper='' checks='' facts_file=''
    eval "setup_units=\$SETUP_UNITS_$each config_file=\$CONFIG_FILE_$each wrapper=\$WRAPPER_$each checks=\$CHECKS_$each"
    eval "facts_file=\$FACTS_FILE_$each"
    for setup_unit in $setup_units; do
      state=$(state_of "$setup_unit.service")
      say "setup.$setup_unit" "$state"
      [ "$state" != failed ] || {
        failed=setup
        journalctl -q -o cat -n "$TAIL_LINES" -u "$setup_unit.service" | tail -c "$TAIL_BYTES" | lines_of log
      }
    done
    say config "$(head -c "$TAIL_BYTES" "$config_file" 2>/dev/null)"
    [ -z "$facts_file" ] || say facts "$(head -c "$TAIL_BYTES" "$facts_file" 2>/dev/null)"
    if [ "$status" != running ] && [ "$failed" = no ]; then check_node; fi
  done

  [ "$failed" != yes ] || tail -c "$TAIL_BYTES" "$LOG_FILE" 2>/dev/null | tail -n "$TAIL_LINES" | lines_of log
  [ "$is_ready" = yes ] || [ "$has_more" = yes ] || [ "$failed" != no ]
}

# Hundredths of a second since the machine has booted.
uptime_now() {
  read -r uptime _ </proc/uptime
  printf '%s%s\n' "${uptime%.*}" "${uptime#*.}"
}

is_running() { read -r status <"$STATUS_FILE" && [ "$status" = running ]; } 2>/dev/null

sum_of() { printf '%s\n' "$1" | cksum | tr ' ' -; }

# Waits three times as long as the last look took, because looking must not slow down the installation. While the
# installer runs, only its status is read for that long, and the wait ends with it. $1: hundredths of a second.
rest() {
  least=2
  ! is_running || least=10
  tenths=$(($1 * 3 / 10))
  [ "$tenths" -ge "$least" ] || tenths=$least
  [ "$tenths" -le 50 ] || tenths=50
  if [ "$least" = 2 ]; then
    sleep "$((tenths / 10)).$((tenths % 10))"
    return
  fi
  while [ "$tenths" -gt 0 ] && is_running; do
    sleep 0.1
    tenths=$((tenths - 1))
  done
}

began=$(uptime_now)
ends=$((began + ${4:-0} * 100))
until answer=$(look) || [ "$(sum_of "$answer")" != "$known" ] || [ "$(uptime_now)" -ge "$ends" ]; do
  rest $(($(uptime_now) - began))
  began=$(uptime_now)
done
printf 'seen=%s\n%s\n' "$(sum_of "$answer")" "$answer"
