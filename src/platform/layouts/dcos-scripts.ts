/** Replaces `docker`, whose path is `$real`: answers `docker version` like a Docker before 18.09, without the versions of its components. */
export const plainDockerVersion = `if [ "$*" = version ]; then
  exec "$real" version --format 'Client:
 Version: {{.Client.Version}}
Server:
 Version: {{.Server.Version}}'
fi
exec "$real" "$@"
`;

/**
 * In a container, systemd doesn't own the host's control groups. So Mesos must not request them from systemd, and Mesos and Docker must stay inside
 * the container's own group, which a container restored from an image finds at another place. The user's own settings stay unchanged.
 */
const confineDocker = `
# The command of Docker's unit.
confine_docker() {
  mkdir -p /etc/systemd/system/docker.service.d
  {
    cat <<'CLUSTER_E2E_END'
[Unit]
After=ssh.service sshd.service

[Service]
ExecStart=
ExecStart=/bin/sh -c 'own=$$(sed -n "s/^[0-9]*:[^:]*memory[^:]*://p" /proc/1/cgroup | head -n 1); own=$\${own%%/init.scope}; \\
  grep -qs cgroup-parent /etc/docker/daemon.json || \\
    set -- "$$@" --exec-opt native.cgroupdriver=cgroupfs --cgroup-parent "$\${own%%/}/docker"; \\
  exec "$$@"' docker \\
CLUSTER_E2E_END
    printf '  %s\\n' "$1"
  } >/etc/systemd/system/docker.service.d/cluster-e2e.conf
}
`;

export const containerSetup = `${confineDocker}
own=$(sed -n 's/^[0-9]*:[^:]*memory[^:]*://p' /proc/1/cgroup | head -n 1)
own=\${own%/init.scope}
own=\${own%/}
mkdir -p /var/lib/dcos
touch /var/lib/dcos/mesos-slave-common
chmod 644 /var/lib/dcos/mesos-slave-common
set_for_mesos() {
  grep -q "^$1=" /var/lib/dcos/mesos-slave-common || echo "$1=$2" >>/var/lib/dcos/mesos-slave-common
}
set_for_mesos MESOS_SYSTEMD_ENABLE_SUPPORT false
root=$own/mesos
set_for_mesos MESOS_CGROUPS_ROOT "\${root#/}"
unit=$(systemctl cat docker.service || :)
case $unit in
  '' | *--cgroup-parent*) ;;
  *)
    confine_docker "$(echo "$unit" | sed -n 's/^ExecStart=//p' | tail -n 1)"
    restart_docker
    ;;
esac
`;

/** Docker starts while the node boots, which takes less time than to start it later. */
export const imageSetup = `${confineDocker}
unit=
for folder in /usr/lib/systemd/system /lib/systemd/system; do
  [ ! -e "$folder/docker.service" ] || unit=$folder/docker.service
done
[ -n "$unit" ] || fail "Docker's package has no docker.service"
confine_docker "$(sed -n 's/^ExecStart=//p' "$unit")"
systemctl enable docker.service
`;
