#!/bin/sh
# Starts the bootstrap server as a unit of systemd, and waits until it answers. Runs as root on the first master,
# behind script-start.sh and with unit-functions.sh; prints nothing.
# Values: UNIT, its name; UNIT_FILE; SERVER, SETTINGS, STATE and END, the paths of its files; SERVER_TEXT, END_TEXT
# and SETTINGS_TEXT, what to write there, of which the last lacks its end: the deadline, in SECONDS_LEFT; ADDRESS and
# PORT; PROBE, the path of a file that it must serve, which is a secret; ANSWER_SECONDS, how long it may take.

main() {
  python=$(find_python)
  [ -n "$python" ] || fail 'there is no Python on this machine'
  rm -f "$STATE"
  printf '%s, "deadline": %s}\n' "$SETTINGS_TEXT" "$(($(date +%s) + SECONDS_LEFT))" >"$SETTINGS"
  printf '%s' "$SERVER_TEXT" >"$SERVER"
  printf '%s' "$END_TEXT" >"$END"
  write_unit
  systemctl --no-reload enable "$UNIT"
  reload_unless_read "$UNIT"
  systemctl restart "$UNIT"
  deadline=$(($(uptime_now) + ANSWER_SECONDS))
  # Python usually starts in a tenth of a second, and a look at the journal takes almost as long.
  tries=0
  until answers; do
    tries=$((tries + 1))
    [ "$tries" -gt 6 ] || { sleep 0.04 && continue; }
    word=$(last_word)
    case $word in *' is taken by '*) fail "$word" ;; esac
    [ "$(uptime_now)" -lt "$deadline" ] || fail "it does not answer at $ADDRESS:$PORT${word:+: $word}"
    sleep 0.2
  done
}

# /usr/libexec/platform-python: RHEL 8 and later; python2.7: CentOS 7.
find_python() {
  for name in python3 /usr/libexec/platform-python python2.7 python; do
    command -v "$name" || continue
    break
  done
}

# Reads the server's own lines: those that systemd adds to the unit's journal name no cause.
last_word() { journalctl -q -n 1 -o cat "_SYSTEMD_UNIT=$UNIT.service" || :; }

answers() {
  printf 'url = "%s"\n' "http://$ADDRESS:$PORT/$PROBE" |
    curl -fsS --noproxy '*' --max-time 30 -o /dev/null --config - 2>/dev/null
}

# At boot, the server's address may come up after the unit, so the unit restarts without a limit. All options work with
# systemd 219.
write_unit() {
  cat >"$UNIT_FILE" <<CLUSTER_E2E_END
[Unit]
Description=Serves the installer to the nodes of the cluster
Wants=network-online.target
After=network-online.target

[Service]
ExecStart=$python $SERVER $SETTINGS
ExecStopPost=/bin/sh $END
Restart=on-failure
RestartSec=1
StartLimitInterval=0
LimitNOFILE=8192
LimitCORE=0
CapabilityBoundingSet=CAP_CHOWN CAP_FOWNER CAP_DAC_OVERRIDE CAP_SETUID CAP_SETGID CAP_SYS_CHROOT
PrivateTmp=yes
NoNewPrivileges=yes

[Install]
WantedBy=multi-user.target
CLUSTER_E2E_END
  chmod 644 "$UNIT_FILE"
}
