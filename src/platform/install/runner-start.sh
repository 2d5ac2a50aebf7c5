#!/bin/sh
# The start of a script that systemd runs on a node as root. Prints into that script's log.
# Values: FOLDER, where scripts are put; LOG_FILE; BOOTSTRAP_URL, a secret; LOGIN_ENVIRONMENT, a file such as
# /etc/environment.

cd "$FOLDER" || exit 1
umask 022
exec >>"$LOG_FILE" 2>&1 </dev/null
# A unit has neither HOME nor USER.
HOME=/root USER=root LOGNAME=root
export HOME USER LOGNAME
# Logins get the node's proxy from this file; units don't.
proxies=$(sed -nE "s/^(export )?([A-Za-z]+_(proxy|PROXY)=)[\"']?([^\"']*)[\"']?\$/\2\4/p" "$LOGIN_ENVIRONMENT" 2>/dev/null)
while read -r line; do [ -z "$line" ] || export "${line?}"; done <<END
$proxies
END

# ask PATH [CURL'S OPTIONS]. The server's URL is a secret, so it appears in no argument list.
ask() {
  path=$1
  shift
  printf 'url = "%s"\n' "$BOOTSTRAP_URL/$path" |
    curl -fsS --noproxy '*' --connect-timeout 10 --max-time 300 --config - "$@"
}

# Seconds since the machine's boot, because its clock may be set at any time.
uptime_now() {
  read -r uptime _ </proc/uptime
  echo "${uptime%.*}"
}

limit() { deadline=$(($(uptime_now) + $1)); }

# Fails once the limit has passed.
pause() { [ "$(uptime_now)" -lt "$deadline" ] && sleep 2; }
