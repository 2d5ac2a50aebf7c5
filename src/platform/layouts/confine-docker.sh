#!/bin/sh
# In a container, systemd doesn't own the host's control groups. So Docker must not request them from systemd, and must
# stay inside the container's own group, which a container restored from an image finds at another place. The user's own
# settings stay unchanged. Functions for docker-container.sh, docker-image.sh and dcos-container.sh; run as root.
# shellcheck disable=SC2016 # the unit's shell expands these words

# The command of Docker's unit. Since version 26, Docker starts no container with a network where it may not turn IPv6
# off, which is so if /proc/sys cannot be written to.
confine_docker() {
  mkdir -p /etc/systemd/system/docker.service.d
  {
    cat <<'CLUSTER_E2E_END'
[Unit]
After=ssh.service sshd.service

[Service]
Environment=DOCKER_ALLOW_IPV6_ON_IPV4_INTERFACE=1
ExecStart=
ExecStart=/bin/sh -c 'own=$$(sed -n "s/^[0-9]*:[^:]*memory[^:]*://p" /proc/1/cgroup | head -n 1); own=$${own%%/init.scope}; \
  grep -qs cgroup-parent /etc/docker/daemon.json || \
    set -- "$$@" --exec-opt native.cgroupdriver=cgroupfs --cgroup-parent "$${own%%/}/docker"; \
  exec "$$@"' docker \
CLUSTER_E2E_END
    printf '  %s\n' "$1"
  } >/etc/systemd/system/docker.service.d/cluster-e2e.conf
}

# Docker may be running already. systemd itself overlooks the first drop-in of a unit that it has read before.
confine_present_docker() {
  unit=$(systemctl cat docker.service || :)
  case $unit in
    '' | *--cgroup-parent*) ;;
    *)
      confine_docker "$(echo "$unit" | sed -n 's/^ExecStart=//p' | tail -n 1)"
      systemctl daemon-reload
      restart_docker
      ;;
  esac
}
