const dangerous =
  "apt-get apt dpkg yum dnf rpm groupadd useradd swapoff docker setenforce reboot poweroff shutdown mount".split(
    " ",
  );

/**
 * Replacements for systemd and other programs on a folder machine, by name. The state of a unit is in files of its
 * `run` folder: `<unit>.pid`, `<unit>.ended`.
 */
export const machinePrograms = (folder: string): Readonly<Record<string, string>> => ({
  // sudo -n -H -- COMMAND…
  sudo: `#!/bin/sh
while [ "$1" != -- ]; do shift; done
shift
exec "$@"
`,
  "systemd-run": "#!/bin/sh\nexit 0\n",
  systemctl: `#!/bin/bash
run=${folder}/run
echo "$*" >>$run/systemctl.log
words=()
for word in "$@"; do case $word in -*) ;; ActiveState) ;; *) words+=("$word") ;; esac; done
unit=\${words[1]%.service}
state() {
  if [ -e $run/$unit.ended ]; then
    if [ "$(cat $run/$unit.ended)" = 0 ]; then echo active; else echo failed; fi
  elif [ -e $run/$unit.pid ] && kill -0 "$(cat $run/$unit.pid)" 2>/dev/null; then echo active
  else echo inactive; fi
}
case $1 in --version) echo 'systemd 252 (252.1)'; exit ;; esac
case \${words[0]} in
  show) echo "ActiveState=$(state)" ;;
  is-active) [ "$(state)" = active ] ;;
  restart | start | stop)
    if [ \${words[0]} != start ] && [ -e $run/$unit.pid ]; then
      # Like systemd, with all processes of the unit: the first one leads their session.
      kill -TERM -- "-$(cat $run/$unit.pid)" 2>/dev/null
      while kill -0 "$(cat $run/$unit.pid)" 2>/dev/null; do sleep 0.01; done
      rm -f $run/$unit.ended
    fi
    [ \${words[0]} != stop ] || exit 0
    rm -f $run/$unit.pid
    command=$(sed -n 's/^ExecStart=//p' ${folder}/etc/systemd/system/$unit.service)
    after=$(sed -n 's/^ExecStopPost=//p' ${folder}/etc/systemd/system/$unit.service)
    MACHINE=${folder} setsid bash -c 'echo $$ >$0.pid.new; mv $0.pid.new $0.pid; trap "exit 143" TERM; $1 & wait $!; status=$?
      echo $status >$0.ended; $2' $run/$unit "$command" "$after" >$run/$unit.log 2>&1 </dev/null &
    until [ -s $run/$unit.pid ]; do sleep 0.01; done ;;
  enable) : >$run/$unit.enabled ;;
  disable) rm -f $run/$unit.enabled ;;
  is-enabled) [ -e $run/$unit.enabled ] ;;
  *) : ;;
esac
`,
  "systemd-detect-virt": "#!/bin/sh\nexit 1\n",
  // Requests come from the machine's own address, as between real machines.
  curl: `#!/bin/sh\nexec /usr/bin/curl --interface "$(cat ${folder}/address)" "$@"\n`,
  journalctl: "#!/bin/sh\necho 'journal of this computer'\n",
  coredumpctl: "#!/bin/sh\necho 'No coredumps found.' >&2\nexit 1\n",
  // Programs that could change the machine that runs the tests fail here, or refuse what would set its clock.
  date: '#!/bin/sh\ncase " $*" in *" -s"* | *" --set"*) echo "date: cannot set date: Operation not permitted" >&2; exit 1 ;; esac\nexec /bin/date "$@"\n',
  perl: '#!/bin/sh\ncase $* in *syscall*) exit 1 ;; esac\nexec /usr/bin/perl "$@"\n',
  python3: '#!/bin/sh\ncase $* in *clock_settime*) exit 1 ;; esac\nexec /usr/bin/python3 "$@"\n',
  ...Object.fromEntries(
    dangerous.map((name) => [
      name,
      `#!/bin/sh\necho 'no ${name} on a folder machine' >&2\nexit 100\n`,
    ]),
  ),
});

/**
 * Programs of a machine with a clock of its own, which only `date` reads and sets. The file `run/clock` has the nanoseconds that it is ahead, and
 * `run/date` a line for each set. A file `stuck` makes it fail.
 */
export const ownClock: Readonly<Record<string, string>> = {
  bash: '#!/bin/sh\nexec /bin/sh "$@"\n',
  date: `#!/bin/sh
ahead=$(cat "$MACHINE/run/clock" 2>/dev/null || echo 0)
now=$(($(/bin/date +%s%N) + ahead))
case $1 in
  --set=@*)
    [ ! -e "$MACHINE/stuck" ] || { echo 'not permitted' >&2; exit 1; }
    given=\${1#--set=@}
    echo "$((\${given%.*}\${given#*.} - $(/bin/date +%s%N)))" >"$MACHINE/run/clock"
    echo "$USER $*" >>"$MACHINE/run/date" ;;
  +%s%N) echo "$now" ;;
  +%s.%N) printf '%d.%09d\\n' "$((now / 1000000000))" "$((now % 1000000000))" ;;
  *) exec /bin/date "$@" ;;
esac
`,
};
