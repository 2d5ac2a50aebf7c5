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
 * the container's own group. The user's own settings stay unchanged.
 */
export const containerSetup = `
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
if ! grep -qs cgroup-parent /etc/docker/daemon.json; then
  start=$(systemctl cat docker.service | sed -n 's/^ExecStart=//p' | tail -n 1)
  case $start in
    '' | *--cgroup-parent*) ;;
    *)
      mkdir -p /etc/systemd/system/docker.service.d
      printf '[Service]\\nExecStart=\\nExecStart=%s --exec-opt native.cgroupdriver=cgroupfs --cgroup-parent %s\\n' "$start" "$own/docker" \\
        >/etc/systemd/system/docker.service.d/cluster-e2e.conf
      restart_docker
      ;;
  esac
fi
`;
