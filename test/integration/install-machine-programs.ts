const dangerous =
  "apt-get apt dpkg yum dnf rpm groupadd useradd swapoff docker setenforce reboot poweroff shutdown mount".split(" ");

/** What a folder machine has of systemd and the like: name → script. Unit states are files in its `run` folder: `<unit>.pid`, `<unit>.ended`. */
export const machinePrograms = (folder: string): Readonly<Record<string, string>> => ({
  // sudo -n -H -- COMMAND…
  sudo: `#!/bin/sh
while [ "$1" != -- ]; do shift; done
shift
exec "$@"
`,
  "systemd-run": `#!/bin/bash
for word in "$@"; do
  case $word in --unit=*) unit=\${word#--unit=} ;; esac
done
file=\${@: -1}
rm -f ${folder}/run/$unit.ended
MACHINE=${folder} setsid sh -c 'echo $$ >${folder}/run/'$unit'.pid; sh "$0"; echo $? >${folder}/run/'$unit'.ended' "$file" \\
  >/dev/null 2>&1 </dev/null &
until [ -s ${folder}/run/$unit.pid ]; do sleep 0.01; done
`,
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
  restart)
    if [ -e $run/$unit.pid ]; then
      kill "$(cat $run/$unit.pid)"
      while kill -0 "$(cat $run/$unit.pid)" 2>/dev/null; do sleep 0.01; done
    fi
    setsid $(sed -n 's/^ExecStart=//p' ${folder}/etc/systemd/system/$unit.service) >$run/$unit.log 2>&1 </dev/null &
    echo $! >$run/$unit.pid ;;
  stop | reset-failed | enable | disable | daemon-reload | start) : ;;
  *) : ;;
esac
`,
  "systemd-detect-virt": "#!/bin/sh\nexit 1\n",
  journalctl: "#!/bin/sh\necho 'journal of this machine'\n",
  // What could change the machine that runs the tests: here it fails loudly.
  ...Object.fromEntries(
    dangerous.map((name) => [name, `#!/bin/sh\necho 'no ${name} on a folder machine' >&2\nexit 100\n`]),
  ),
});
